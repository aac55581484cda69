package services

import (
	"net"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
)

// Domain is that of the cluster.
const Domain = "cluster.local"

// ttl of answers, in seconds: addresses of pods change with each start.
const ttl = 1

// ResolvConf is the file /etc/resolv.conf of a pod; the namespace is empty outside of pods.
func ResolvConf(server, namespace string) string {
	search := "svc." + Domain + " " + Domain
	if namespace != "" {
		search = namespace + "." + search
	}
	return "nameserver " + server + "\nsearch " + search + "\noptions ndots:5 timeout:1 attempts:2\n"
}

// ServeDNS answers at UDP and TCP port 53 of an address, until the process ends. It returns when it serves.
func ServeDNS(address string, table *Table) error {
	packets, err := net.ListenPacket("udp", net.JoinHostPort(address, "53"))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "53"))
	if err != nil {
		return err
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, request *dns.Msg) { w.WriteMsg(table.answer(request)) })
	go (&dns.Server{PacketConn: packets, Handler: handler}).ActivateAndServe()
	go (&dns.Server{Listener: listener, Handler: handler}).ActivateAndServe()
	return nil
}

func (t *Table) answer(request *dns.Msg) *dns.Msg {
	reply := new(dns.Msg).SetReply(request)
	reply.Authoritative = true
	if len(request.Question) != 1 {
		reply.Rcode = dns.RcodeFormatError
		return reply
	}
	question := request.Question[0]
	header := dns.RR_Header{Name: question.Name, Class: dns.ClassINET, Ttl: ttl}
	known := false
	switch question.Qtype {
	case dns.TypeSRV:
		header.Rrtype = dns.TypeSRV
		reply.Answer, known = t.srv(header, question.Name)
	default:
		var addresses []string
		addresses, known = t.addresses(question.Name)
		if question.Qtype != dns.TypeA {
			break // the name is known, and has nothing of that type
		}
		header.Rrtype = dns.TypeA
		for _, a := range addresses {
			reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: net.ParseIP(a)})
		}
	}
	if !known {
		reply.Rcode = dns.RcodeNameError
	}
	return reply
}

// addresses returns those of a name, and whether there is such a name:
//
//	SERVICE.NAMESPACE.svc.cluster.local            the service's own address, or those of its endpoints if it has none
//	HOSTNAME.SERVICE.NAMESPACE.svc.cluster.local   that of an endpoint
//	10-77-0-12.NAMESPACE.pod.cluster.local         that of a pod
func (t *Table) addresses(name string) ([]string, bool) {
	labels, kind := split(name)
	switch {
	case kind == "pod" && len(labels) == 2:
		ip := net.ParseIP(strings.ReplaceAll(labels[0], "-", "."))
		return []string{ip.String()}, ip != nil
	case kind != "svc" || len(labels) < 2 || len(labels) > 3:
		return nil, false
	}
	namespace, service := labels[len(labels)-1], labels[len(labels)-2]
	s, err := t.services.Services(namespace).Get(service)
	if err != nil {
		return nil, false
	}
	if len(labels) == 2 && s.Spec.ClusterIP != corev1.ClusterIPNone {
		return []string{s.Spec.ClusterIP}, true
	}
	var found []string
	for _, e := range t.endpoints(namespace, service) {
		if len(labels) == 2 || e.hostname == labels[0] {
			found = append(found, e.address)
		}
	}
	return found, len(labels) == 2 || len(found) > 0
}

// srv answers _PORT._PROTOCOL.SERVICE.NAMESPACE.svc.cluster.local.
func (t *Table) srv(header dns.RR_Header, name string) ([]dns.RR, bool) {
	labels, kind := split(name)
	if kind != "svc" || len(labels) != 4 {
		return nil, false
	}
	namespace, service := labels[3], labels[2]
	s, err := t.services.Services(namespace).Get(service)
	if err != nil {
		return nil, false
	}
	var found []dns.RR
	for _, port := range s.Spec.Ports {
		if "_"+port.Name != labels[0] || "_"+strings.ToLower(string(port.Protocol)) != labels[1] {
			continue
		}
		for _, e := range t.endpoints(namespace, service) {
			host := e.hostname
			if host == "" {
				host = strings.ReplaceAll(e.address, ".", "-")
			}
			found = append(found, &dns.SRV{Hdr: header, Weight: 1, Port: uint16(port.TargetPort.IntValue()),
				Target: host + "." + service + "." + namespace + ".svc." + Domain + "."})
		}
	}
	return found, len(found) > 0
}

// split returns the labels of a name before its kind, which is svc or pod.
func split(name string) ([]string, string) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	rest, ok := strings.CutSuffix(name, "."+Domain)
	if !ok {
		return nil, ""
	}
	labels := strings.Split(rest, ".")
	return labels[:len(labels)-1], labels[len(labels)-1]
}
