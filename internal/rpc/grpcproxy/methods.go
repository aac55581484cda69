package grpcproxy

import (
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
)

// memberList is the call that the proxy answers itself.
const memberList = pb.Cluster_MemberList_FullMethodName

// method is what is known of one.
type method struct {
	service, name string
	kind          string // as grpc_server_* metrics call it
	clientStreams bool   // the client may say several things, or nothing for long
}

// unaryKind is the kind of those with one message in each direction.
const unaryKind = "unary"

// unknown stands for all methods that none of these services has: a member says what it thinks of them.
var unknown = &method{service: "other", name: "other", kind: "bidi_stream", clientStreams: true}

var methods = collect(&pb.KV_ServiceDesc, &pb.Watch_ServiceDesc, &pb.Lease_ServiceDesc, &pb.Cluster_ServiceDesc,
	&pb.Maintenance_ServiceDesc, &pb.Auth_ServiceDesc, &v3lockpb.Lock_ServiceDesc, &v3electionpb.Election_ServiceDesc,
	&healthpb.Health_ServiceDesc, &quoratepb.Membership_ServiceDesc, &quoratepb.Writer_ServiceDesc,
	&quoratepb.Tokens_ServiceDesc, &quoratepb.Upgrade_ServiceDesc, &quoratepb.Doctor_ServiceDesc, &quoratepb.Top_ServiceDesc,
	&quoratepb.History_ServiceDesc, &quoratepb.Limits_ServiceDesc, &quoratepb.Audit_ServiceDesc,
	&quoratepb.Encryption_ServiceDesc, &quoratepb.Backup_ServiceDesc)

// collect lists the methods by the names that calls have.
func collect(services ...*grpc.ServiceDesc) map[string]*method {
	all := map[string]*method{}
	for _, s := range services {
		add := func(name, kind string) {
			all["/"+s.ServiceName+"/"+name] = &method{service: s.ServiceName, name: name, kind: kind,
				clientStreams: kind == "bidi_stream" || kind == "client_stream"}
		}
		for _, m := range s.Methods {
			add(m.MethodName, unaryKind)
		}
		for _, m := range s.Streams {
			switch {
			case m.ClientStreams && m.ServerStreams:
				add(m.StreamName, "bidi_stream")
			case m.ClientStreams:
				add(m.StreamName, "client_stream")
			default:
				add(m.StreamName, "server_stream")
			}
		}
	}
	return all
}

func methodOf(name string) *method {
	if m := methods[name]; m != nil {
		return m
	}
	return unknown
}

// fullName is the name that calls have.
func (m *method) fullName() string { return "/" + m.service + "/" + m.name }

// of tells whether the method belongs to a package of services.
func (m *method) of(prefix string) bool { return strings.HasPrefix(m.service, prefix) }
