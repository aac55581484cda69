// Package services is what pods find each other by: names in DNS, and addresses of services. It stands in for CoreDNS and
// kube-proxy, and reads the same things from the API: services and their endpoint slices.
package services
