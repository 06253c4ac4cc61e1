package k8s

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The network policies allow the ways that requests take, and no other: from the gateway to all, from the console to
// the gateway, and from each service to the one that knows the keys and the ended tokens.
func TestNetworkPoliciesAllowTheHousesArrows(t *testing.T) {
	t.Parallel()
	for _, overlay := range overlays {
		m := build(t, overlay)
		want, have := map[string]bool{"console → gateway": true, "gateway → console": true}, map[string]bool{}
		for from, d := range m.deployments {
			if d.Spec.Template.Labels["tier"] == "service" {
				want["gateway → "+from], want[from+" → applications"] = true, true
			}
			for to := range m.deployments {
				for _, port := range []int{8080, 9090} {
					if !m.allows(t, from, to, port) {
						continue
					}
					assert.Equal(t, 8080, port, "%s → %s", from, to)
					have[from+" → "+to] = true
				}
			}
		}
		assert.Equal(t, want, have)
	}
}

// allows reports whether policies let pods of one Deployment connect to those of another.
func (m manifests) allows(t *testing.T, from, to string, port int) bool {
	t.Helper()
	source := labels.Set(m.deployments[from].Spec.Template.Labels)
	target := labels.Set(m.deployments[to].Spec.Template.Labels)
	leaves, enters, leaving, entering := false, false, false, false
	for _, p := range m.policies {
		for _, direction := range p.Spec.PolicyTypes {
			switch direction {
			case networkingv1.PolicyTypeEgress:
				if !selects(t, &p.Spec.PodSelector, source) {
					continue
				}
				leaving = true
				for _, rule := range p.Spec.Egress {
					leaves = leaves || covers(rule.Ports, port) && meets(t, rule.To, target)
				}
			case networkingv1.PolicyTypeIngress:
				if !selects(t, &p.Spec.PodSelector, target) {
					continue
				}
				entering = true
				for _, rule := range p.Spec.Ingress {
					enters = enters || covers(rule.Ports, port) && meets(t, rule.From, source)
				}
			default:
				panic(fmt.Sprint("unknown direction ", direction))
			}
		}
	}
	assert.True(t, leaving && entering, "%s → %s: a pod without a policy may do everything", from, to)
	return leaves && enters
}

func covers(ports []networkingv1.NetworkPolicyPort, port int) bool {
	for _, p := range ports {
		if p.Port.IntValue() == port {
			return true
		}
	}
	return len(ports) == 0
}

// meets reports whether peers select a pod of the platform's namespace.
func meets(t *testing.T, peers []networkingv1.NetworkPolicyPeer, pod labels.Set) bool {
	t.Helper()
	for _, p := range peers {
		inNamespace := p.NamespaceSelector == nil ||
			selects(t, p.NamespaceSelector, labels.Set{"kubernetes.io/metadata.name": "idplatform"})
		if p.IPBlock == nil && inNamespace && (p.PodSelector == nil || selects(t, p.PodSelector, pod)) {
			return true
		}
	}
	return len(peers) == 0
}

func selects(t *testing.T, s *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	assert.NoError(t, err)
	return selector.Matches(set)
}
