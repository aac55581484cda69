package traffic_test

import (
	"context"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/traffic"
)

// member answers Collect.
type member struct {
	collected *quoratepb.Collected
	err       error
}

func (m *member) Invoke(_ context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	if method != quoratepb.Doctor_Collect_FullMethodName || !args.(*quoratepb.CollectRequest).GetSeries() {
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	if m.err == nil {
		proto.Merge(reply.(proto.Message), m.collected)
	}
	return m.err
}

func (m *member) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams")
}

func show(t *testing.T, m *member) string {
	t.Helper()
	code, body := consoletest.Show(t, m, traffic.Page(), "/traffic")
	if code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	return body
}

// section is one section of a page, without markup.
func section(page, id string) string {
	_, text, _ := strings.Cut(page, `<section id="`+id+`"`)
	text, _, _ = strings.Cut(text, "</section>")
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString("<"+text, " ")), " ")
}

func wantAll(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in: %.3000s", want, text)
		}
	}
}

// Ensure that each member has its own numbers, and that the sums stand below them.
func TestPage(t *testing.T) {
	c := traffic.Even(5)
	c.Members[1].Observation.Traffic.Writes = 1200
	c.Members[1].Observation.Traffic.Offered, c.Members[1].Observation.Traffic.OneTrip = 900, 600
	nearly := c.Members[3].Observation.Traffic // counters are read one after the other
	nearly.Writes, nearly.Offered, nearly.OneTrip = 1003, 1001, 1000
	c.Members[1].Observation.Peers = []*quoratepb.ObservedPeer{{Id: 1, RoundTripUs: 40_000}}
	page := show(t, &member{collected: c})
	wantAll(t, section(page, "traffic-members"), "m1 leader 10 20 25 % – 2.00 ms 6.00 ms 500 µs 1.50 ms 2.00 ms", "m2 20 20 25 % 50 %",
		"all 67 100", "Of the last 1 min,")
	wantAll(t, section(page, "traffic-slow"), "none stands out", "quorate doctor --through-member")
	trips := section(page, "traffic-trips")
	wantAll(t, trips, "m1 Commits of a leader",
		"m2 Some of the offered writes waited for the leader", "m2 Some writes were not offered", "m3, m5 None was offered", "5 voters", "m4 Nearly all")
	wantAll(t, section(page, "traffic-split"), "queue", "network", "sync", "apply", "2.10 ms")
	wantAll(t, section(page, "traffic-writes"), "2 min ago", "1 min ago", "m5", "10")
	if strings.Contains(page, `id="traffic-share"`) {
		t.Error("a chart of a fast path that nobody used")
	}
}

// Ensure that the member that stands out is named with its cause.
func TestPage_slow(t *testing.T) {
	c := traffic.Even(3)
	c.Members[2].Observation.Disk.SyncP99Us = 48_000
	page := show(t, &member{collected: c})
	wantAll(t, section(page, "traffic-slow"), "m3 stands out", "m3 is slow by its disk", "48.0 ms", "Plan to replace m3")
	wantAll(t, page, `href="/members?member=3"`, `href="/changes/replace?member=3"`)
}

// Ensure that what is not told is said so, and is no zero.
func TestPage_untold(t *testing.T) {
	c := traffic.Even(3)
	c.Members[0].Observation.Traffic, c.Members[0].Observation.Series = nil, nil
	c.Members[1].Observation, c.Members[1].Fault, c.Members[1].FaultText = nil, "silent", "it did not answer in time"
	c.Members[2].Observation.Traffic = &quoratepb.ObservedTraffic{}
	page := show(t, &member{collected: c})
	wantAll(t, section(page, "traffic-members"), "m1 leader not told by this build 2.00 ms", "m2 no answer it did not answer in time",
		"m3 0 0 – – – – – – 2.20 ms", "all that told 0 0")
	wantAll(t, section(page, "traffic-trips"), "Nothing was written", "m1: not told by this build; m2: it does not answer; m3: it had no writes")
	wantAll(t, section(page, "traffic-slow"), "nothing to compare")
	wantAll(t, section(page, "traffic-writes"), "Not told by the builds of m1")
}

// Ensure that an empty answer, and one that cannot be had, are said.
func TestPage_nothing(t *testing.T) {
	page := show(t, &member{collected: &quoratepb.Collected{}})
	wantAll(t, page, "No member is known yet", "No member tells how its traffic goes", "There is no history yet")
	wantAll(t, show(t, &member{err: status.Error(codes.PermissionDenied, "etcdserver: permission denied")}), "Not permitted")
	wantAll(t, show(t, &member{err: status.Error(codes.Unimplemented, "unknown")}), "Not served")
}

// Ensure that whatever members say, the page is bounded, sound, and has nothing of theirs as markup.
func TestPage_hostile(t *testing.T) {
	c := traffic.Even(200)
	for i, m := range c.Members {
		m.Name = "<script>alert(1)</script>\u202e" + strings.Repeat("x", 1<<16)
		tr := m.Observation.Traffic
		switch i % 3 {
		case 0:
			tr.Writes, tr.OneTrip, tr.Offered, tr.PutP99Us, tr.QueueUs = 1, math.MaxUint64, 7, math.MaxInt64, math.MinInt64
			m.Observation.WindowMs = -5
		case 1:
			tr.Writes, tr.OneTrip, tr.Reads, tr.Serializable = math.MaxUint64, 0, 1, math.MaxUint64
			tr.SplitWrites, tr.QueueUs, tr.NetworkUs, tr.SyncUs = 1, math.MaxInt64, math.MaxInt64, math.MaxInt64
			for range 10_000 {
				m.Observation.Series = append(m.Observation.Series, &quoratepb.ObservedPoint{EndedMs: 1, LastedMs: math.MaxInt64,
					Writes: math.MaxUint64, PutP99Us: math.MaxInt64})
			}
		case 2:
			m.Observation, m.FaultText = nil, "<script>alert(2)</script>"
		}
	}
	page := show(t, &member{collected: c})
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "\u202e") || strings.Contains(page, "NaN") || len(page) > 4<<20 {
		t.Errorf("%d bytes: %.2000s", len(page), page)
	}
}
