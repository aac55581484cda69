package members

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/operator/internal/decide"
)

// raw answers by the bytes that a test made.
type raw struct{ answers map[string][]byte }

func (raw) Name() string                    { return "proto" }
func (raw) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (raw) Unmarshal(_ []byte, _ any) error { return nil }

// hostile serves answers by the names of methods; of others it says so much that no error should have.
func hostile(t *testing.T, answers map[string][]byte) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := raw{answers}
	server := grpc.NewServer(grpc.ForceServerCodec(r), grpc.MaxSendMsgSize(1<<30), grpc.UnknownServiceHandler(
		func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			answer, known := r.answers[method[strings.LastIndexByte(method, '/')+1:]]
			if !known {
				return status.Error(codes.Internal, strings.Repeat("\x1b[2J", 32<<10))
			}
			return stream.SendMsg(&answer)
		}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := dial(listener.Addr().String(), "m1", insecure.NewCredentials())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// inside is a message with one field that has these bytes.
func inside(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Ensure that an answer which would become many times its size is not read, that one with many members or long names makes no long work
// and no long text, and that none takes memory beyond a bound: one cluster of one namespace would else end the operator for all.
func TestGroup_Look_hostile(t *testing.T) {
	voter := encoded(t, &quoratepb.Cluster{Members: []*quoratepb.Member{{Role: quoratepb.Role_ROLE_VOTER}}})
	leads := &quoratepb.Cluster{ClusterId: 9, Leader: 1, Term: 1, Members: []*quoratepb.Member{{Id: 1, Name: "m1", Started: true,
		Role: quoratepb.Role_ROLE_VOTER, Leader: true}}}
	long := encoded(t, leads)
	long = append(long, encoded(t, &quoratepb.Cluster{Members: []*quoratepb.Member{{Id: 2, Name: strings.Repeat("n", 200<<10)}}})...)
	many := func(bytesOf int) []byte { return inside(1, bytes.Repeat([]byte{0x52, 0}, bytesOf/2)) }
	ok := inside(1, encoded(t, leads))
	for name, answers := range map[string]map[string][]byte{
		"empty members, of 256 KiB":        {"Describe": many(250 << 10)},
		"empty members, of 4 MiB":          {"Describe": many(4 << 20)},
		"voters without id":                {"Describe": inside(1, append(long, bytes.Repeat(voter, 8000)...))},
		"a long name, jobs of empty bytes": {"Describe": inside(1, long), "ListJobs": bytes.Repeat([]byte{0x0a, 0}, 100<<10)},
		"numbers in a job":                 {"Describe": ok, "ListJobs": inside(1, inside(14, bytes.Repeat([]byte{1}, 200<<10)))},
		"observations":                     {"Describe": ok, "ListJobs": {}, "Collect": bytes.Repeat([]byte{0x1a, 2, 0x42, 0}, 50<<10)},
		"long errors":                      {},
	} {
		g := &Group{login: newLogin(nil)}
		for range 3 {
			g.seats, g.conns = append(g.seats, Seat{Member: "m1"}), append(g.conns, hostile(t, answers))
		}
		begun := time.Now()
		v := g.Look(t.Context(), 9, decide.Epoch{})
		took := time.Since(begun)
		g.Close()
		said := ""
		if v.Err != nil {
			said = v.Err.Error()
		}
		said += strings.Join(v.Apart, "")
		if took > lookFor || len(said) > 4<<10 || strings.ContainsRune(said, '\x1b') {
			t.Errorf("%s: %v, %d bytes: %.300q", name, took, len(said), said)
		}
		for method, data := range answers {
			if took := decoding(method, data); took > 8<<20 {
				t.Errorf("%s: %d MiB to read %s", name, took>>20, method)
			}
		}
		if (v.Described != nil) != strings.Contains(name, "observations") || v.Described == nil && v.Err == nil {
			t.Errorf("%s: described %v, error %v", name, v.Described != nil, v.Err)
		}
	}
}

// decoding is how many bytes are taken to read an answer that is not refused for its own.
func decoding(method string, data []byte) uint64 {
	into := map[string]proto.Message{"Describe": &quoratepb.DescribeResponse{}, "ListJobs": &quoratepb.ListJobsResponse{},
		"Collect": &quoratepb.Collected{}}[method]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_ = answers.Unmarshal(data[:min(len(data), mostAnswer)], into)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Ensure that what becomes a part of flags, claims and lines to paste is what it should be, and that ids come through.
func TestBelievable(t *testing.T) {
	decode := func(c *quoratepb.Cluster) (*quoratepb.Cluster, error) {
		answer := &quoratepb.DescribeResponse{}
		if err := answers.Unmarshal(encoded(t, &quoratepb.DescribeResponse{Cluster: c}), answer); err != nil {
			t.Fatal(err)
		}
		return believable(answer.GetCluster())
	}
	const id = 0xfedcba9876543210
	for name, want := range map[string]string{"kv-x-1": "kv-x-1", "": "", "n.example_1": "n.example_1", "a,b": "fedcba9876543210",
		"$(SECRET)": "fedcba9876543210", "evil:2380/x": "fedcba9876543210", "-x": "fedcba9876543210", "a\nb": "ab",
		strings.Repeat("a", 256): "fedcba9876543210"} {
		c, err := decode(&quoratepb.Cluster{Epoch: "1-0a1b2c3d", Members: []*quoratepb.Member{{Id: id, Name: name, Build: "1\x1b.1"}}})
		if err != nil || c.Members[0].Name != want || c.Members[0].Id != id || c.Members[0].Build != "1.1" {
			t.Errorf("%q: %v, %v", name, c, err)
		}
		o := &quoratepb.Observation{}
		err = answers.Unmarshal(encoded(t, &quoratepb.Observation{MemberId: id, Config: &quoratepb.ObservedConfig{
			Members: []*quoratepb.ObservedMember{{Id: id, Name: name}}}}), o)
		if got := o.GetConfig().GetMembers()[0].GetName(); err != nil || got != want {
			t.Errorf("%q: observed %q, %v", name, got, err)
		}
	}
	for _, epoch := range []string{"99-$(curl x|sh)", "1-0A", "x", "-1", "12345678901", "1-"} {
		if _, err := decode(&quoratepb.Cluster{Epoch: epoch}); err == nil {
			t.Errorf("the epoch %q is believed", epoch)
		}
	}
	if _, err := decode(&quoratepb.Cluster{Members: make([]*quoratepb.Member, mostMembers+1)}); err == nil {
		t.Error("too many members are believed")
	}
	twice := &quoratepb.Cluster{Members: []*quoratepb.Member{{Id: 1, Name: "a"}, {Id: 1, Name: "b"}}}
	if _, err := decode(twice); err == nil {
		t.Error("two members of one id are believed")
	}
	jobs := &quoratepb.ListJobsResponse{}
	for i := range 50 + mostJobs {
		job := &quoratepb.Job{Id: id, State: "done", Newcomers: []uint64{id}, Spec: &quoratepb.ChangeSpec{Remove: []uint64{id - 1},
			Add: []*quoratepb.Newcomer{{Name: "a,b"}}}}
		if i >= 50 {
			job.State = "later"
		}
		jobs.Jobs = append(jobs.Jobs, job)
	}
	read := &quoratepb.ListJobsResponse{}
	if err := answers.Unmarshal(encoded(t, jobs), read); err != nil {
		t.Fatal(err)
	}
	got, err := unended(read.GetJobs())
	if err != nil || len(got) != mostJobs || got[0].Newcomers[0] != id || got[0].Spec.Remove[0] != id-1 ||
		got[0].Spec.Add[0].Name != "fedcba9876543210" {
		t.Errorf("%d jobs, %v: %v", len(got), err, got[0])
	}
	if _, err := unended(append(read.GetJobs(), got[0])); err == nil {
		t.Error("too many jobs are believed")
	}
}

// Ensure that no answer of a large honest cluster is refused: ended jobs of many members with all that they have, and observations.
func TestCodec_honest(t *testing.T) {
	const most = 16
	full := &quoratepb.Job{Config: &quoratepb.ConfigID{Index: 1}, Final: &quoratepb.ConfigID{Index: 1}, State: "done",
		Spec: &quoratepb.ChangeSpec{Expected: &quoratepb.ConfigID{Index: 1}}}
	o := &quoratepb.Observation{Core: &quoratepb.ObservedCore{Term: 1}, Config: &quoratepb.ObservedConfig{}}
	for i := range most {
		urls := []string{"https://" + strings.Repeat("h", 200) + ":2380"}
		o.Peers = append(o.Peers, &quoratepb.ObservedPeer{Id: ^uint64(i), Received: 1 << 40, Sent: 1 << 40, State: "replicate"})
		o.Config.Members = append(o.Config.Members, &quoratepb.ObservedMember{Id: ^uint64(i), Name: strings.Repeat("n", 60), PeerUrls: urls,
			ClientUrls: urls})
		o.Process = &quoratepb.ObservedProcess{Parts: append(o.GetProcess().GetParts(), &quoratepb.ObservedPart{Name: "store", Bytes: 1})}
		o.Limits = append(o.Limits, &quoratepb.ObservedLimit{Name: "team"})
		o.Certificates = append(o.Certificates, &quoratepb.ObservedCertificate{Port: "peer", FromMs: 1})
	}
	for range 9 {
		full.Spec.Add = append(full.Spec.Add, &quoratepb.Newcomer{Name: "m", PeerUrls: []string{"https://h:2380"}})
		full.Spec.Remove, full.Newcomers = append(full.Spec.Remove, ^uint64(0)), append(full.Newcomers, ^uint64(0))
		full.Names = append(full.Names, &quoratepb.NamedMember{Id: ^uint64(0), Name: "m"})
		full.Phases, full.Begun = append(full.Phases, "catch-up"), append(full.Begun, &quoratepb.PhaseTime{Phase: "catch-up", AtMs: 1})
	}
	jobs, all := &quoratepb.ListJobsResponse{}, &quoratepb.Collected{}
	for range 82 { // all that a cluster keeps
		jobs.Jobs = append(jobs.Jobs, full)
	}
	for range most {
		all.Members = append(all.Members, &quoratepb.CollectedMember{Id: 1, Name: "m", Observation: o})
	}
	for _, m := range []proto.Message{jobs, all, o} {
		data, read := encoded(t, m), m.ProtoReflect().New().Interface()
		left := mostParts
		if err := count(data, m.ProtoReflect().Descriptor(), &left); err != nil || len(data) > mostAnswer {
			t.Errorf("%T of %d bytes: %v", m, len(data), err)
		}
		t.Logf("%T: %d bytes, %d parts", m, len(data), mostParts-left)
		if err := answers.Unmarshal(data, read); err != nil {
			t.Errorf("%T: %v", m, err)
		}
	}
}

// Ensure that all questions of a look to members that hang end together, and that further ones end at once.
func TestGroup_asking(t *testing.T) {
	g := &Group{seats: make([]Seat, 9), conns: make([]*grpc.ClientConn, 9), login: newLogin(nil), spent: lookFor - 100*time.Millisecond}
	begun := time.Now()
	hangs := func(ctx context.Context, _ *grpc.ClientConn) error {
		<-ctx.Done()
		return ctx.Err()
	}
	err := g.any(t.Context(), hangs)
	if took := time.Since(begun); took > time.Second || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it took %v: %v", took, err)
	}
}

// Ensure that one sentence for each two voters does not become many, and that work is not their product with all observations.
func TestApart_many(t *testing.T) {
	c, all := &quoratepb.Cluster{}, &quoratepb.Collected{}
	for id := range uint64(mostMembers) {
		c.Members = append(c.Members, &quoratepb.Member{Id: id, Name: "m", Role: quoratepb.Role_ROLE_VOTER})
		all.Members = append(all.Members, &quoratepb.CollectedMember{Id: id, Observation: &quoratepb.Observation{MemberId: id}})
	}
	got := Apart(c, all)
	if len(got) != mostAlarms+1 || !slices.Contains(got, "4016 more connections of voters are missing") {
		t.Errorf("%d sentences: %q", len(got), got[len(got)-1])
	}
	if len(doctor.Judge(all)) > 1000 {
		t.Error("the doctor has no bound")
	}
}
