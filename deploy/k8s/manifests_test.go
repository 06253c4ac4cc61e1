package k8s

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/openapi"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	_ "sigs.k8s.io/gateway-api/apis/v1" // so that the module with the definitions is required
	"sigs.k8s.io/kubectl-validate/pkg/openapiclient"
	"sigs.k8s.io/kubectl-validate/pkg/validator"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// manifests is what an overlay makes.
type manifests struct {
	documents   [][]byte // all of them
	deployments map[string]appsv1.Deployment
	policies    []networkingv1.NetworkPolicy
	services    map[string]corev1.Service
	config      map[string]string
}

func build(t *testing.T, overlay string) (m manifests) {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	require.NoError(t, err)
	m.deployments, m.services = map[string]appsv1.Deployment{}, map[string]corev1.Service{}
	for _, r := range made.Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		m.documents = append(m.documents, text)
		switch r.GetKind() {
		case "Deployment":
			m.deployments[r.GetName()] = decode[appsv1.Deployment](t, text)
		case "NetworkPolicy":
			m.policies = append(m.policies, decode[networkingv1.NetworkPolicy](t, text))
		case "Service":
			m.services[r.GetName()] = decode[corev1.Service](t, text)
		case "ConfigMap":
			m.config = decode[corev1.ConfigMap](t, text).Data
		case "Secret":
			t.Errorf("%s: secrets do not belong into the manifests", overlay)
		}
	}
	return m
}

func decode[T any](t *testing.T, text []byte) (value T) {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict(text, &value))
	return value
}

// program is the only container of a Deployment.
func program(t *testing.T, d appsv1.Deployment) corev1.Container {
	t.Helper()
	require.Len(t, d.Spec.Template.Spec.Containers, 1, d.Name)
	return d.Spec.Template.Spec.Containers[0]
}

var overlays = []string{"small", "large"}

// versions of Kubernetes whose schemas are compared; matchLabelKeys of the large overlay need 1.27.
var versions = []string{"1.27", "1.30"}

func TestManifestsAreValid(t *testing.T) {
	t.Parallel()
	definitions := gatewayAPI(t)
	for _, version := range versions {
		builtin := openapiclient.NewHardcodedBuiltins(version)
		check, err := validator.New(openapiclient.NewComposite(builtin, definitions))
		require.NoError(t, err)
		for _, overlay := range overlays {
			for _, text := range build(t, overlay).documents {
				_, object, err := check.Parse(text)
				if assert.NoError(t, err, "%s, Kubernetes %s:\n%s", overlay, version, text) {
					assert.NoError(t, check.Validate(object), "%s, Kubernetes %s:\n%s", overlay, version, text)
				}
			}
		}
	}
}

// gatewayAPI has the definitions of the Gateway API's standard channel, from its Go module.
func gatewayAPI(t *testing.T) openapi.Client {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	require.NoError(t, err)
	return openapiclient.NewLocalCRDFiles(
		os.DirFS(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard")))
}

// A schema that is not looked at would accept everything.
func TestInvalidManifestsAreRefused(t *testing.T) {
	t.Parallel()
	check, err := validator.New(openapiclient.NewComposite(openapiclient.NewHardcodedBuiltins("1.30"), gatewayAPI(t)))
	require.NoError(t, err)
	for _, text := range []string{
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: eighty}]}",
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {port: 80}",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}\nspec: {hostnames: [1]}",
	} {
		_, object, err := check.Parse([]byte(text))
		if err == nil {
			err = check.Validate(object)
		}
		assert.Error(t, err, text)
	}
}

// Every pod is admitted to a namespace that enforces the Pod Security Standard "restricted".
func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	require.NoError(t, err)
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, overlay := range overlays {
		for name, d := range build(t, overlay).deployments {
			pod := d.Spec.Template
			result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
			assert.True(t, result.Allowed, "%s: %s", name, result.ForbiddenDetail())
			assert.True(t, *program(t, d).SecurityContext.ReadOnlyRootFilesystem, name)
			assert.False(t, *pod.Spec.AutomountServiceAccountToken, name)
		}
	}
}

// What selects pods selects those of its name, and every port that is named is one of the pod.
func TestServicesReachPods(t *testing.T) {
	t.Parallel()
	for _, overlay := range overlays {
		m := build(t, overlay)
		require.Len(t, m.deployments, 11)
		for name, d := range m.deployments {
			c, labels := program(t, d), d.Spec.Template.Labels
			ports := map[string]int32{}
			for _, p := range c.Ports {
				ports[p.Name] = p.ContainerPort
			}
			assert.Equal(t, map[string]int32{"http": 8080, "metrics": 9090}, ports, name)
			assert.Equal(t, "http", c.ReadinessProbe.HTTPGet.Port.String(), name)
			assert.Equal(t, "http", c.LivenessProbe.HTTPGet.Port.String(), name)
			assert.Subset(t, labels, d.Spec.Selector.MatchLabels, name)
			service := m.services[name]
			require.Len(t, service.Spec.Ports, 1, name)
			assert.Equal(t, "http", service.Spec.Ports[0].TargetPort.String(), name)
			assert.Equal(t, labels["app.kubernetes.io/name"], service.Spec.Selector["app.kubernetes.io/name"], name)
			assert.Equal(t, "registry.example.com/idp-"+name+":1", c.Image)
		}
	}
}
