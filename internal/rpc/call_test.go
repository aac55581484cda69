package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	dto "github.com/prometheus/client_model/go"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/proposals"
)

// roads are the transports of calls of KV.
var roads = []struct {
	name    string
	library bool // the transport is grpc-go's
	invoke  func(ctx context.Context, t *testing.T, s *server, token, method string, request proto.Message) error
}{
	{"own transport", false, invokeGRPC},
	{"grpc-go", true, invokeGRPC},
	{"JSON", false, invokeJSON},
}

func invokeGRPC(ctx context.Context, _ *testing.T, s *server, token, method string, request proto.Message) error {
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "token", token)
	}
	return s.bare.Invoke(ctx, "/etcdserverpb.KV/"+method, request, replyTo(method))
}

func replyTo(method string) proto.Message {
	switch method {
	case "Range":
		return new(pb.RangeResponse)
	case "Put":
		return new(pb.PutResponse)
	case "DeleteRange":
		return new(pb.DeleteRangeResponse)
	case "Txn":
		return new(pb.TxnResponse)
	}
	return new(pb.CompactionResponse)
}

func invokeJSON(ctx context.Context, t *testing.T, s *server, token, method string, request proto.Message) error {
	paths := map[string]string{"Range": "range", "Put": "put", "DeleteRange": "deleterange", "Txn": "txn", "Compact": "compaction"}
	body, err := protojson.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/v3/kv/"+paths[method], strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	var refused struct {
		Code    codes.Code
		Message string
	}
	if err := json.NewDecoder(answer.Body).Decode(&refused); err != nil {
		t.Fatal(err)
	}
	return status.Error(refused.Code, refused.Message)
}

// askedBackend counts how many times it is asked without waiting. While it is full it refuses requests. While it holds, it
// answers no write and no read, and signals that it was asked.
type askedBackend struct {
	*machineBackend
	promptly    atomic.Int64
	learns      atomic.Bool
	full, holds atomic.Bool
	asked       chan struct{}
}

func newAskedBackend(t *testing.T) *askedBackend {
	return &askedBackend{machineBackend: newMachineBackend(t), asked: make(chan struct{}, 1)}
}

func (b *askedBackend) Learner() bool { return b.learns.Load() }

func (b *askedBackend) Propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	if err := b.ask(ctx); err != nil {
		return kv.Result{}, err
	}
	return b.machineBackend.Propose(ctx, command)
}

func (b *askedBackend) ReadIndex(ctx context.Context) error {
	if err := b.ask(ctx); err != nil {
		return err
	}
	return b.machineBackend.ReadIndex(ctx)
}

// ask refuses a call with a goroutine, delays it until its context ends, or lets it pass.
func (b *askedBackend) ask(ctx context.Context) error {
	switch {
	case b.full.Load():
		return member.ErrTooManyRequests
	case b.holds.Load():
		b.asked <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (b *askedBackend) ProposeAsync(command *kv.Command, done proposals.Completion) (func() bool, error) {
	return b.askPromptly(func() (func() bool, error) { return b.machineBackend.ProposeAsync(command, done) })
}

func (b *askedBackend) ReadAsync(done proposals.Completion) (func() bool, error) {
	return b.askPromptly(func() (func() bool, error) { return b.machineBackend.ReadAsync(done) })
}

func (b *askedBackend) askPromptly(serve func() (func() bool, error)) (abandon func() bool, err error) {
	b.promptly.Add(1)
	switch {
	case b.full.Load():
		return nil, member.ErrTooManyRequests
	case b.holds.Load():
		b.asked <- struct{}{}
		return func() bool { return true }, nil
	}
	return serve()
}

// steps are the counts of calls of KV: of the gate, of timings, of proposals, and of bytes.
type steps map[string]float64

func (s *server) steps(t *testing.T) steps {
	t.Helper()
	families, err := s.registry.Gather() // as text they would take most of the test's time
	if err != nil {
		t.Fatal(err)
	}
	found := steps{}
	for _, family := range families {
		name := family.GetName()
		for _, m := range family.GetMetric() {
			labels := labelsOf(m)
			gate := strings.HasPrefix(name, "grpc_server_") && strings.Contains(labels, `grpc_service="etcdserverpb.KV"`)
			timed := m.GetHistogram() != nil && strings.HasSuffix(name, "_duration_seconds") &&
				(strings.HasPrefix(name, "etcd_server_request_") || strings.HasPrefix(name, "etcd_server_range_"))
			switch {
			case timed:
				found[name+"_count"+labels] = float64(m.GetHistogram().GetSampleCount())
			case gate, strings.HasPrefix(name, "etcd_server_proposals_pending"), strings.HasPrefix(name, "etcd_network_client_grpc_"),
				strings.HasPrefix(name, "etcd_server_proposals_failed_total"),
				strings.HasPrefix(name, "etcd_server_read_indexes_failed_total"):
				found[name+labels] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return found
}

// labelsOf are the labels of a metric, as its text has them.
func labelsOf(m *dto.Metric) string {
	if len(m.GetLabel()) == 0 {
		return ""
	}
	var pairs []string
	for _, l := range m.GetLabel() {
		pairs = append(pairs, l.GetName()+`="`+l.GetValue()+`"`)
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// since is the difference of the counts to earlier ones.
func (s steps) since(before steps) steps {
	all := steps{}
	for name, n := range s {
		if n != before[name] {
			all[name] = n - before[name]
		}
	}
	return all
}

// gateSteps is the gate's counts of one call.
func gateSteps(method string, code codes.Code) steps {
	labels := fmt.Sprintf(`grpc_method="%s",grpc_service="etcdserverpb.KV",grpc_type="unary"}`, method)
	want := steps{
		"grpc_server_started_total{" + labels: 1, "grpc_server_msg_received_total{" + labels: 1,
		`grpc_server_handled_total{grpc_code="` + code.String() + `",` + labels: 1,
	}
	if code == codes.OK {
		want["grpc_server_msg_sent_total{"+labels] = 1
	}
	return want
}

func timed(kind string, success bool) string {
	return fmt.Sprintf(`etcd_server_request_duration_seconds_count{success="%t",type="%s"}`, success, kind)
}

const (
	failedProposals = "etcd_server_proposals_failed_total"
	failedIndexes   = "etcd_server_read_indexes_failed_total"
	rangeRead       = `etcd_server_range_duration_seconds_count{success="true"}`
)

// bareConn is a connection that makes each call once, without the retries of the official client.
func bareConn(t *testing.T, s *server) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// roadServer is a server with a transport, with users or without, and the token that a caller must show.
func roadServer(t *testing.T, backend *askedBackend, byLibrary, users bool) (s *server, token string) {
	t.Helper()
	defer func(before bool) { *library = before }(*library)
	*library = *library || byLibrary
	s = serve(t, backend, nil)
	s.bare = bareConn(t, s)
	for _, key := range []string{"b1", "s1"} { // as enable puts
		if err := invokeGRPC(waitContext(t), t, s, "", "Put", &pb.PutRequest{Key: []byte(key)}); err != nil {
			t.Fatal(err)
		}
	}
	if !users {
		return s, ""
	}
	enable(t, s)
	answer, err := pb.NewAuthClient(s.bare).Authenticate(waitContext(t), &pb.AuthenticateRequest{Name: "alice", Password: "alicepw"})
	if err != nil {
		t.Fatal(err)
	}
	return s, answer.Token
}

// Ensure that calls of KV take the same steps on every transport, with users and without: those that have a goroutine and those
// that have none.
func TestKV_steps(t *testing.T) {
	ranges := func(r *pb.RangeRequest) []*pb.RequestOp {
		return []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: r}}}
	}
	puts := func(key string) []*pb.RequestOp {
		return []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte("w")}}}}
	}
	a := []byte("a1")
	rows := []struct {
		name, method string
		request      proto.Message
		code         codes.Code
		more         []string // steps beside the gate's, each once
		promptly     int64    // calls without waiting, on our own transport
	}{
		{"put", "Put", &pb.PutRequest{Key: a, Value: []byte("v")}, codes.OK, []string{timed("Put", true)}, 1},
		{"put with the pair before", "Put", &pb.PutRequest{Key: a, PrevKv: true}, codes.OK, []string{timed("Put", true)}, 0},
		{"put without a key", "Put", &pb.PutRequest{}, codes.InvalidArgument, nil, 0},
		{"put with no such lease", "Put", &pb.PutRequest{Key: a, Lease: 5}, codes.NotFound, []string{timed("Put", true)}, -1},
		{"put too large", "Put", &pb.PutRequest{Key: a, Value: make([]byte, 1600<<10)}, codes.InvalidArgument, nil, 0},
		{"range", "Range", &pb.RangeRequest{Key: a}, codes.OK, []string{timed("Range", true), rangeRead}, 1},
		{"serializable range", "Range", &pb.RangeRequest{Key: a, Serializable: true}, codes.OK, []string{timed("Range", true), rangeRead}, 0},
		{"range of many", "Range", &pb.RangeRequest{Key: a, RangeEnd: []byte("b")}, codes.OK, []string{timed("Range", true), rangeRead}, 0},
		{"range without a key", "Range", &pb.RangeRequest{}, codes.InvalidArgument, []string{timed("Range", false)}, 0},
		{"range of the future", "Range", &pb.RangeRequest{Key: a, Revision: 1000}, codes.OutOfRange,
			[]string{timed("Range", false), `etcd_server_range_duration_seconds_count{success="false"}`}, 1},
		{"txn", "Txn", &pb.TxnRequest{Success: puts("a2")}, codes.OK, []string{timed("Txn", true)}, 1},
		{"txn that reads", "Txn", &pb.TxnRequest{Success: ranges(&pb.RangeRequest{Key: a})}, codes.OK, []string{timed("ReadonlyTxn", true)}, 0},
		{"txn that puts twice", "Txn", &pb.TxnRequest{Success: append(puts("a2"), puts("a2")...)}, codes.InvalidArgument, nil, 0},
		{"delete", "DeleteRange", &pb.DeleteRangeRequest{Key: []byte("a2")}, codes.OK, []string{timed("DeleteRange", true)}, 0},
		{"delete of many", "DeleteRange", &pb.DeleteRangeRequest{Key: a, RangeEnd: []byte("b")}, codes.OK,
			[]string{timed("DeleteRange", true)}, 0},
	}
	unserved := map[string][]string{ // counts if the member does not serve it
		"put": {timed("Put", false), failedProposals}, "txn": {timed("Txn", false), failedProposals},
		"delete": {timed("DeleteRange", false), failedProposals}, "range": {timed("Range", false), failedIndexes},
		"txn that reads": {timed("ReadonlyTxn", false), failedIndexes},
	}
	first := map[string]string{} // answers to a call, and their bytes
	for _, users := range []bool{false, true} {
		for _, road := range roads {
			backend := newAskedBackend(t)
			s, token := roadServer(t, backend, road.library, users)
			before := s.steps(t)
			walk := func(name, method string, request proto.Message, code codes.Code, more []string, promptly int64) {
				t.Helper()
				asked := backend.promptly.Load()
				err := road.invoke(waitContext(t), t, s, token, method, request)
				after := s.steps(t)
				got := after.since(before)
				before = after
				asked = backend.promptly.Load() - asked
				where := fmt.Sprintf("%s by %s, with users %t", name, road.name, users)
				if status.Code(err) != code {
					t.Errorf("%s: got %v, want %v", where, err, code)
				}
				if road.name != "own transport" || *library {
					promptly = 0
				}
				if promptly >= 0 && asked != promptly {
					t.Errorf("%s: the member was asked %d times without waiting, want %d", where, asked, promptly)
				}
				said := fmt.Sprint(status.Convert(err).Message(), ", bytes ", got[receivedBytes], got[sentBytes])
				if want, known := first[name]; known && said != want {
					t.Errorf("%s: got %q, elsewhere %q", where, said, want)
				}
				first[name] = said
				delete(got, receivedBytes)
				delete(got, sentBytes)
				want := gateSteps(method, code)
				for _, step := range more {
					want[step] = 1
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s: the steps are\n%v, want\n%v", where, got, want)
				}
			}
			for _, row := range rows {
				walk(row.name, row.method, row.request, row.code, row.more, row.promptly)
			}
			if users {
				other, denied := []byte("s1"), codes.PermissionDenied
				walk("put of another's", "Put", &pb.PutRequest{Key: other}, denied, nil, 0)
				walk("range of another's", "Range", &pb.RangeRequest{Key: other}, denied, []string{timed("Range", false)}, 0)
				walk("txn of another's", "Txn", &pb.TxnRequest{Success: puts("s1")}, denied, nil, 0)
				walk("delete of another's", "DeleteRange", &pb.DeleteRangeRequest{Key: other}, denied, nil, 0)
			}
			notServed := func(why string, write, read codes.Code) {
				t.Helper()
				for _, row := range rows {
					if more := unserved[row.name]; more != nil {
						code := write
						if more[1] == failedIndexes {
							code = read
						}
						walk(row.name+" "+why, row.method, row.request, code, more, row.promptly)
					}
				}
			}
			backend.full.Store(true)
			notServed("of a member that is full", codes.Unknown, codes.Unknown)
			backend.full.Store(false)
			backend.lead(consensus.NoMember)
			notServed("without a leader", codes.DeadlineExceeded, codes.Unavailable)
			backend.learns.Store(true)
			for _, row := range rows {
				if unserved[row.name] != nil { // the gate refuses it, and no other step is taken
					walk(row.name+" of a learner", row.method, row.request, codes.FailedPrecondition, nil, 0)
				}
			}
		}
	}
}

const (
	receivedBytes = "etcd_network_client_grpc_received_bytes_total"
	sentBytes     = "etcd_network_client_grpc_sent_bytes_total"
)

// Ensure that a call that its client gives up leaves the same counts on every transport.
func TestKV_steps_lost(t *testing.T) {
	for _, users := range []bool{false, true} {
		for _, road := range roads {
			backend := newAskedBackend(t)
			s, token := roadServer(t, backend, road.library, users)
			backend.holds.Store(true)
			for _, row := range []struct {
				method  string
				request proto.Message
				more    []string
			}{
				{"Put", &pb.PutRequest{Key: []byte("a1")}, []string{timed("Put", false), failedProposals}},
				{"Put", &pb.PutRequest{Key: []byte("a1"), PrevKv: true}, []string{timed("Put", false), failedProposals}},
				{"Txn", &pb.TxnRequest{Success: list(putOp("a1"))}, []string{timed("Txn", false), failedProposals}},
				{"Txn", &pb.TxnRequest{}, []string{timed("ReadonlyTxn", false)}},
				{"DeleteRange", &pb.DeleteRangeRequest{Key: []byte("a1")}, []string{timed("DeleteRange", false), failedProposals}},
				{"DeleteRange", &pb.DeleteRangeRequest{Key: []byte("a1"), RangeEnd: []byte("a2")},
					[]string{timed("DeleteRange", false), failedProposals}},
				{"Range", &pb.RangeRequest{Key: []byte("a1")}, []string{timed("Range", false)}},
				{"Range", &pb.RangeRequest{Key: []byte("a1"), RangeEnd: []byte("a2")}, []string{timed("Range", false)}},
			} {
				before := s.steps(t)
				ctx, cancel := context.WithCancel(waitContext(t))
				ended := make(chan error)
				go func() { ended <- road.invoke(ctx, t, s, token, row.method, row.request) }()
				<-backend.asked
				cancel()
				if err := <-ended; status.Code(err) != codes.Canceled {
					t.Errorf("%v by %s: got %v", row.request, road.name, err)
				}
				want := gateSteps(row.method, codes.Canceled)
				for _, step := range row.more {
					want[step] = 1
				}
				for handled := range want { // the last step
					if strings.HasPrefix(handled, "grpc_server_handled_total") {
						await(t, func() bool { return s.steps(t).since(before)[handled] > 0 })
					}
				}
				got := s.steps(t).since(before) // once more: the steps are not read at one moment
				delete(got, receivedBytes)
				if !maps.Equal(got, want) {
					t.Errorf("%v by %s, with users %t: the steps are\n%v, want\n%v", row.request, road.name, users, got, want)
				}
			}
		}
	}
}
