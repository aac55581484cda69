// Package plane starts a control plane of Kubernetes on Quorate: members of Quorate as its etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, all processes of this machine, with TLS everywhere, service accounts and RBAC.
package plane
