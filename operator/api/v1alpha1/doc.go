// Package v1alpha1 has the resources of the operator: QuorateCluster, and QuorateBackup and QuorateRestore, which are views
// of what a cluster does by itself. Their rules are CEL expressions in the CRDs, so that the API server refuses what is
// wrong.
// +kubebuilder:object:generate=true
// +groupName=quorate.io
package v1alpha1
