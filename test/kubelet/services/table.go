package services

import (
	"math/rand/v2"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// A Table is what the API says of services.
type Table struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
}

// NewTable makes a table of the factory's informers, which the caller starts.
func NewTable(factory informers.SharedInformerFactory) *Table {
	return &Table{services: factory.Core().V1().Services().Lister(),
		slices: factory.Discovery().V1().EndpointSlices().Lister()}
}

// An endpoint is one address of a service.
type endpoint struct{ address, hostname string }

// endpoints returns the addresses that are ready, or all of a service that publishes those that are not.
func (t *Table) endpoints(namespace, service string) []endpoint {
	var found []endpoint
	t.each(namespace, service, func(e discoveryv1.Endpoint, _ []discoveryv1.EndpointPort) {
		if e.Conditions.Ready != nil && !*e.Conditions.Ready {
			return
		}
		for _, address := range e.Addresses {
			one := endpoint{address: address}
			if e.Hostname != nil {
				one.hostname = *e.Hostname
			}
			found = append(found, one)
		}
	})
	return found
}

// target returns an address and port that a connection to a port of a service may go to; false if none is ready.
func (t *Table) target(namespace, service string, port corev1.ServicePort) (string, bool) {
	var found []string
	t.each(namespace, service, func(e discoveryv1.Endpoint, ports []discoveryv1.EndpointPort) {
		if e.Conditions.Ready != nil && !*e.Conditions.Ready {
			return
		}
		for _, p := range ports {
			if p.Port == nil || p.Name != nil && *p.Name != port.Name {
				continue
			}
			for _, address := range e.Addresses {
				found = append(found, address+":"+strconv.Itoa(int(*p.Port)))
			}
		}
	})
	if len(found) == 0 {
		return "", false
	}
	return found[rand.IntN(len(found))], true
}

func (t *Table) each(namespace, service string, do func(discoveryv1.Endpoint, []discoveryv1.EndpointPort)) {
	of := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service})
	all, err := t.slices.EndpointSlices(namespace).List(of)
	if err != nil {
		return // a lister of a cache has no errors
	}
	for _, slice := range all {
		for _, e := range slice.Endpoints {
			do(e, slice.Ports)
		}
	}
}
