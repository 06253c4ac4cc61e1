// Package k8s has the Kustomize manifests of the platform, and their tests.
package k8s
