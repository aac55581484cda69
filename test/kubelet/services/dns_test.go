package services

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func table(t *testing.T) *Table {
	yes, no, name, port := true, false, "client", int32(2379)
	host := func(s string) *string { return &s }
	client := fake.NewClientset(
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "a"},
			Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone,
				Ports: []corev1.ServicePort{{Name: name, Port: port, TargetPort: intstr.FromInt32(port),
					Protocol: corev1.ProtocolTCP}}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "front", Namespace: "a"},
			Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9"}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "q-1", Namespace: "a",
			Labels: map[string]string{discoveryv1.LabelServiceName: "q"}},
			Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.77.1.2"}, Hostname: host("q-0"),
					Conditions: discoveryv1.EndpointConditions{Ready: &yes}},
				{Addresses: []string{"10.77.1.3"}, Hostname: host("q-1"),
					Conditions: discoveryv1.EndpointConditions{Ready: &no}},
			}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	factory := informers.NewSharedInformerFactory(client, 0)
	found := NewTable(factory)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return found
}

func TestAnswer(t *testing.T) {
	found := table(t)
	for _, test := range []struct {
		name string
		kind uint16
		want []string
		code int
	}{
		{"q.a.svc.cluster.local.", dns.TypeA, []string{"10.77.1.2"}, dns.RcodeSuccess},
		{"Q-0.q.a.svc.cluster.local.", dns.TypeA, []string{"10.77.1.2"}, dns.RcodeSuccess},
		{"q-1.q.a.svc.cluster.local.", dns.TypeA, nil, dns.RcodeNameError}, // not ready
		{"front.a.svc.cluster.local.", dns.TypeA, []string{"10.96.0.9"}, dns.RcodeSuccess},
		{"front.a.svc.cluster.local.", dns.TypeAAAA, nil, dns.RcodeSuccess},
		{"front.b.svc.cluster.local.", dns.TypeA, nil, dns.RcodeNameError},
		{"q.a.svc.cluster.local.a.svc.cluster.local.", dns.TypeA, nil, dns.RcodeNameError},
		{"10-77-1-9.a.pod.cluster.local.", dns.TypeA, []string{"10.77.1.9"}, dns.RcodeSuccess},
		{"example.com.", dns.TypeA, nil, dns.RcodeNameError},
		{"cluster.local.", dns.TypeA, nil, dns.RcodeNameError},
		{".", dns.TypeA, nil, dns.RcodeNameError},
		{"_client._tcp.q.a.svc.cluster.local.", dns.TypeSRV, []string{"q-0.q.a.svc.cluster.local."}, dns.RcodeSuccess},
		{"_peer._tcp.q.a.svc.cluster.local.", dns.TypeSRV, nil, dns.RcodeNameError},
	} {
		reply := found.answer(new(dns.Msg).SetQuestion(test.name, test.kind))
		var got []string
		for _, record := range reply.Answer {
			switch record := record.(type) {
			case *dns.A:
				got = append(got, record.A.String())
			case *dns.SRV:
				got = append(got, record.Target)
			}
		}
		if reply.Rcode != test.code || !slices.Equal(got, test.want) {
			t.Errorf("%s %s: %s %v, want %s %v", dns.TypeToString[test.kind], test.name, dns.RcodeToString[reply.Rcode], got,
				dns.RcodeToString[test.code], test.want)
		}
	}
}

// Connections go to endpoints that are ready, and to no other.
func TestTarget(t *testing.T) {
	found := table(t)
	for range 50 {
		if got, ok := found.target("a", "q", corev1.ServicePort{Name: "client"}); !ok || got != "10.77.1.2:2379" {
			t.Fatalf("the target is %q, %v", got, ok)
		}
	}
	if got, ok := found.target("a", "q", corev1.ServicePort{Name: "peer"}); ok {
		t.Errorf("a port that no endpoint has goes to %s", got)
	}
}
