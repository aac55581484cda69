// Package objects builds what a cluster consists of in Kubernetes: pods, claims, services and a disruption budget. It calls
// nobody.
package objects
