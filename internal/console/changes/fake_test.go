package changes_test

import (
	"bytes"
	"context"
	"html/template"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/changes"
	"github.com/quorate/quorate/internal/console/page"
)

// fakeCluster answers the membership API, and remembers what it was asked for.
type fakeCluster struct {
	quoratepb.UnimplementedMembershipServer
	quoratepb.UnimplementedDoctorServer
	address string
	conn    *grpc.ClientConn
	pages   []page.Page

	mu        sync.Mutex
	cluster   *quoratepb.Cluster
	plan      *quoratepb.PlanResponse
	jobs      []*quoratepb.Job
	observed  *quoratepb.Observation
	refusals  map[string]error // by the name of a method: its next call is refused so
	planned   []*quoratepb.ChangeSpec
	started   []*quoratepb.StartRequest
	cancelled []uint64
}

func newCluster(t *testing.T) *fakeCluster {
	t.Helper()
	f := &fakeCluster{cluster: threeMembers(), plan: replacePlan(), refusals: map[string]error{}, pages: changes.Pages()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = l.Addr().String()
	server := grpc.NewServer()
	quoratepb.RegisterMembershipServer(server, f)
	quoratepb.RegisterDoctorServer(server, f)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	f.conn, err = grpc.NewClient(f.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20))) // a call within the process has no bound
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.conn.Close() })
	return f
}

func (f *fakeCluster) refusal(method string) error {
	err := f.refusals[method]
	delete(f.refusals, method)
	return err
}

func (f *fakeCluster) Describe(context.Context, *quoratepb.DescribeRequest) (*quoratepb.DescribeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &quoratepb.DescribeResponse{Cluster: f.cluster}, f.refusal("Describe")
}

func (f *fakeCluster) Plan(_ context.Context, spec *quoratepb.ChangeSpec) (*quoratepb.PlanResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planned = append(f.planned, spec)
	return f.plan, f.refusal("Plan")
}

func (f *fakeCluster) Start(_ context.Context, r *quoratepb.StartRequest) (*quoratepb.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refusal("Start"); err != nil {
		return nil, err
	}
	f.started = append(f.started, r)
	job := &quoratepb.Job{Id: r.RequestId, Spec: r.Spec, State: "queued"}
	f.jobs = append(f.jobs, job)
	return job, nil
}

func (f *fakeCluster) ListJobs(context.Context, *quoratepb.ListJobsRequest) (*quoratepb.ListJobsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &quoratepb.ListJobsResponse{Jobs: f.jobs}, f.refusal("ListJobs")
}

func (f *fakeCluster) CancelJob(_ context.Context, r *quoratepb.CancelJobRequest) (*quoratepb.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancelled = append(f.cancelled, r.Id)
	at := slices.IndexFunc(f.jobs, func(j *quoratepb.Job) bool { return j.Id == r.Id })
	if at < 0 {
		return nil, status.Error(codes.NotFound, "there is no such membership job")
	}
	return f.jobs[at], f.refusal("CancelJob")
}

func (f *fakeCluster) Collect(context.Context, *quoratepb.CollectRequest) (*quoratepb.Collected, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.observed == nil {
		return nil, status.Error(codes.Unavailable, "not now")
	}
	third := proto.CloneOf(f.observed)
	third.MemberId, third.Name = 0xa3, "m3"
	third.Peers = []*quoratepb.ObservedPeer{{Id: 0xa1, Connected: true}, {Id: 0xa2, Failures: 9, Fault: "refused"}}
	return &quoratepb.Collected{AtMs: 1_000_000, ByMember: 0xa1, Members: []*quoratepb.CollectedMember{
		{Id: 0xa1, Name: "m1", AskedMs: 1_000_000, Observation: f.observed},
		{Id: 0xa2, Name: "m2", AskedMs: 1_000_000, Fault: "refused", FaultText: "connection refused"},
		{Id: 0xa3, Name: "m3", AskedMs: 1_000_000, Observation: third},
	}}, nil
}

// look is a look at a page of the console.
type look struct {
	f     *fakeCluster
	admin bool
	now   time.Time
}

func (f *fakeCluster) look() look { return look{f: f, admin: true, now: time.UnixMilli(1_000_000)} }

func (l look) request(query string) *page.Request {
	values, _ := url.ParseQuery(query)
	return &page.Request{Conn: l.f.conn, Admin: l.admin, Query: values, Now: l.now, Member: "m1"}
}

// find splits a link into its page and its query.
func (l look) find(t *testing.T, link string) (*page.Page, string) {
	t.Helper()
	path, query, _ := strings.Cut(link, "?")
	at := slices.IndexFunc(l.f.pages, func(p page.Page) bool { return p.Path == path })
	if at < 0 {
		t.Fatalf("there is no page %s", path)
	}
	return &l.f.pages[at], query
}

// get renders the sections of a page that are shown, without the frame.
func (l look) get(t *testing.T, link string) string {
	t.Helper()
	text, err := l.try(t, link)
	if err != nil {
		t.Fatalf("%s: %v", link, err)
	}
	return text
}

func (l look) try(t *testing.T, link string) (string, error) {
	t.Helper()
	p, query := l.find(t, link)
	set := template.Must(template.New("").Funcs(page.Words).ParseFS(p.Templates, "*.html"))
	var out bytes.Buffer
	for i := range p.Sections {
		s := &p.Sections[i]
		data, err := s.Load(t.Context(), l.request(query))
		if err == page.ErrHidden {
			continue
		}
		if err != nil {
			return "", err
		}
		if err := set.ExecuteTemplate(&out, s.Template, data); err != nil {
			t.Fatalf("%s, section %s: %v", link, s.ID, err)
		}
	}
	return out.String(), nil
}

// command is the command line that a section of a page shows.
func (l look) command(t *testing.T, link, section string) string {
	t.Helper()
	p, query := l.find(t, link)
	at := slices.IndexFunc(p.Sections, func(s page.Section) bool { return s.ID == section })
	return p.Sections[at].Command(l.request(query))
}

// post sends a form to an action.
func (l look) post(t *testing.T, path string, form url.Values) (page.Outcome, error) {
	t.Helper()
	for i := range l.f.pages {
		for _, a := range l.f.pages[i].Actions {
			if a.Path == path {
				r := l.request("")
				r.Form = form
				return a.Do(t.Context(), r)
			}
		}
	}
	t.Fatalf("there is no action %s", path)
	return page.Outcome{}, nil
}

var (
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
	action = regexp.MustCompile(`<form method="post" action="([^"]*)"`)
)

// form reads the form of a page that is posted: its action, and its hidden fields.
func form(t *testing.T, text string) (path string, fields url.Values) {
	t.Helper()
	begin := action.FindStringSubmatchIndex(text)
	if begin == nil {
		t.Fatalf("there is no form:\n%s", text)
	}
	fields = url.Values{}
	for _, field := range hidden.FindAllStringSubmatch(text[begin[0]:], -1) {
		fields.Set(field[1], unescape(field[2]))
	}
	return text[begin[2]:begin[3]], fields
}

func unescape(text string) string {
	return strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&amp;", "&", "&lt;", "<", "&gt;", ">", "&#43;", "+").Replace(text)
}

// threeMembers is a cluster of which m2 is silent.
func threeMembers() *quoratepb.Cluster {
	member := func(id uint64, name, host string) *quoratepb.Member {
		return &quoratepb.Member{Id: id, Name: name, Role: quoratepb.Role_ROLE_VOTER, Started: true, Active: true, CaughtUp: true,
			PeerUrls: []string{"http://" + host + ":2380"}, ClientUrls: []string{"http://" + host + ":2379"}, State: "replicate"}
	}
	m1, m2, m3 := member(0xa1, "m1", "10.0.4.1"), member(0xa2, "m2", "10.0.4.2"), member(0xa3, "m3", "10.0.4.3")
	m5 := member(0xa5, "m5", "10.0.4.5")
	m1.Leader, m1.State, m5.Role = true, "", quoratepb.Role_ROLE_LEARNER
	m2.Active, m2.SilentMs, m2.Lag, m2.State = false, 432_000, 18_240, "probe"
	return &quoratepb.Cluster{ClusterId: 0x1f, Config: &quoratepb.ConfigID{Index: 41, Term: 7}, Protocol: "joint-early",
		Settled: true, Leader: 0xa1, Term: 7, LastIndex: 90_000, Strength: strength(3, 2, 0),
		Members: []*quoratepb.Member{m1, m2, m3, m5}}
}

func strength(voters, active, tolerates int32) *quoratepb.Strength {
	return &quoratepb.Strength{Voters: voters, Quorum: voters/2 + 1, Superquorum: voters, Active: active, Tolerates: tolerates}
}

func replacePlan() *quoratepb.PlanResponse {
	during := strength(3, 2, 0)
	during.Outgoing, during.OutgoingQuorum = 3, 2
	return &quoratepb.PlanResponse{Config: &quoratepb.ConfigID{Index: 41, Term: 7}, Leader: 0xa1, Protocol: "joint-early",
		Now: strength(3, 2, 0), Steps: []*quoratepb.PlanStep{
			{Title: "add m4 as a learner", During: strength(3, 2, 0), After: strength(3, 2, 0)},
			{Title: "let m4 catch up", Detail: "stream 3.1 GiB, then the log", During: strength(3, 2, 0), After: strength(3, 2, 0)},
			{Title: "swap m2 for m4 in one joint step", During: during, After: strength(3, 3, 1)},
		}, Warnings: []string{"somebody must start m4"}, WaitsFor: []uint64{0x77},
		Undo: "quorate member replace m4 --name m2 --peer-urls http://10.0.4.2:2380"}
}

// replaceJob is a job that replaces m2 by m4.
func replaceJob(state, phase string) *quoratepb.Job {
	return &quoratepb.Job{Id: 0x3f2a, State: state, Phase: phase, Newcomers: []uint64{0xa4}, CreatedMs: 990_000, StartedMs: 991_000,
		UpdatedMs: 1_000_000, Phases: []string{"join", "start", "snapshot", "catch-up", "swap", "decided", "settle"},
		Names: []*quoratepb.NamedMember{{Id: 0xa2, Name: "m2"}}, Config: &quoratepb.ConfigID{Index: 41, Term: 7},
		Spec: &quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{0xa2}, Protocol: "auto", Expected: &quoratepb.ConfigID{Index: 41, Term: 7},
			Add: []*quoratepb.Newcomer{{Name: "m4", PeerUrls: []string{"http://10.0.4.9:2380"}}}}}
}

// stale is a refusal because another configuration is in force.
func stale(t *testing.T) error {
	t.Helper()
	s, err := status.New(codes.FailedPrecondition, "another configuration").WithDetails(
		&quoratepb.StaleConfig{Current: &quoratepb.ConfigID{Index: 43, Term: 8}, Changed: "m9 was added"})
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

// want wants parts in a text, and others not in it.
func want(t *testing.T, name, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		lacks, no := strings.CutPrefix(part, "!")
		if no == strings.Contains(text, lacks) {
			t.Errorf("%s: want %q\n%s", name, part, text)
		}
	}
}

func clone(job *quoratepb.Job, change func(*quoratepb.Job)) *quoratepb.Job {
	copied := proto.CloneOf(job)
	change(copied)
	return copied
}
