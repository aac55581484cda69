// Package e2e tries the operator against a real API server whose etcd is Quorate, with members that are real processes. A
// small stand-in plays kubelets, the scheduler and the controllers that the scenarios need; test/kubelet has the real ones.
package e2e
