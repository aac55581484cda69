package limits_test

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/limits"
)

// member keeps limits, as a member does: it checks nothing that the form should have checked.
type member struct {
	consoletest.Conn
	states []*quoratepb.LimitState
	counts bool // a quota is never counted to its end
	sets   []*quoratepb.Limit
	deaths []string
}

func (m *member) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	switch r := args.(type) {
	case *quoratepb.ListLimitsRequest:
		if m.Conn[method] == nil {
			proto.Merge(reply.(proto.Message), &quoratepb.ListLimitsResponse{Limits: m.states})
			return nil
		}
	case *quoratepb.SetLimitRequest:
		m.sets = append(m.sets, r.Limit)
		m.forget(r.Limit.GetName())
		m.states = append(m.states, &quoratepb.LimitState{Limit: r.Limit, Counting: m.counts})
		if m.counts {
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}
		return nil
	case *quoratepb.DeleteLimitRequest:
		if !m.forget(r.Name) {
			return status.Error(codes.NotFound, "there is no limit of this name")
		}
		m.deaths = append(m.deaths, r.Name)
		return nil
	}
	return m.Conn.Invoke(ctx, method, args, reply, options...)
}

func (m *member) forget(name string) (was bool) {
	var left []*quoratepb.LimitState
	for _, s := range m.states {
		if s.GetLimit().GetName() != name {
			left = append(left, s)
		}
	}
	was = len(left) < len(m.states)
	m.states = left
	return was
}

// newMember has a limit of each kind: nearly full, refusing, counting, and quiet ones.
func newMember() *member {
	c := consoletest.Healthy(3)
	consoletest.Of(c, 1).Limits = []*quoratepb.ObservedLimit{{Name: "batch", Refused: 7}}
	consoletest.Of(c, 3).Limits = []*quoratepb.ObservedLimit{{Name: "batch", Refused: 5}, {Name: "tenant-a", UsedPercent: 95}}
	return &member{Conn: consoletest.Conn{quoratepb.Doctor_Collect_FullMethodName: c}, states: []*quoratepb.LimitState{
		{Limit: &quoratepb.Limit{Name: "batch", User: "batch", WritesPerSecond: proto.Int64(200), WriteBytesPerSecond: proto.Int64(4 << 20)},
			Refused: 40},
		{Limit: &quoratepb.Limit{Name: "counting", Prefix: []byte("/c/"), QuotaKeys: proto.Int64(9)}, Counting: true, UsedKeys: 4096},
		{Limit: &quoratepb.Limit{Name: "small", Prefix: []byte{}, ValueBytes: proto.Int64(64 << 10)}},
		{Limit: &quoratepb.Limit{Name: "tenant-a", Prefix: []byte("/a/"), QuotaBytes: proto.Int64(1000), QuotaKeys: proto.Int64(0)},
			UsedBytes: 950},
	}}
}

func want(t *testing.T, body string, texts ...string) {
	t.Helper()
	body = html.UnescapeString(body)
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q:\n%s", text, body[strings.Index(body, "<main"):])
			return
		}
	}
}

func open(t *testing.T, m *member, admin bool) *consoletest.Browser {
	return consoletest.Open(t, m, limits.Pages(), admin)
}

// Ensure that the list says what each limit allows and who is near, those first that somebody has to look at, with the refusals of
// all members.
func TestPages_list(t *testing.T) {
	body := open(t, newMember(), false).Get("/limits")
	want(t, body, "<b>4</b><span>limits", `<b class="bad">1</b>`, `<b class="warn">1</b>`, "<b>12</b>", "950 B of 0.98 KiB, 95 %",
		"0 of 0 keys, 100 %", ">full<", ">refuses<", ">being counted<", "4\u2009096 keys so far", "200 writes/s", "4 MiB/s written",
		"user batch", "any key", "every key", "/a/…", "values up to 64 KiB", `data-l="since the start" class="number">40<`,
		"quorate limit list --endpoints http://127.0.0.1:2379")
	order := regexp.MustCompile(`<th scope="row">([a-z-]+)`).FindAllStringSubmatch(body, -1)
	if len(order) != 4 || order[0][1] != "tenant-a" || order[1][1] != "batch" {
		t.Errorf("the order is %v", order)
	}
	m := newMember()
	m.states = nil
	want(t, open(t, m, false).Get("/limits"), "There are no limits", "Set a limit…")
	m.Conn[quoratepb.Doctor_Collect_FullMethodName] = status.Error(codes.Unavailable, "away")
	m.states = newMember().states
	want(t, open(t, m, false).Get("/limits"), "No member told what it refused in the last minute.", `data-l="refused, last minute" class="number">–<`)
	m.Conn[quoratepb.Limits_ListLimits_FullMethodName] = status.Error(codes.PermissionDenied, "etcdserver: permission denied")
	want(t, open(t, m, false).Get("/limits"), "Not permitted")
}

// Ensure that a limit is previewed beside what it replaces, with what it does, what may not be meant, and its command; and that
// what cannot be set says why.
func TestPages_preview(t *testing.T) {
	b := open(t, newMember(), false)
	for query, texts := range map[string][]string{
		"name=new&keys=prefix&prefix=/n/&quota-bytes=1MiB": {">new<", "/n/…", "1 MiB", "is counted first", "read-only",
			"quorate limit set new --prefix /n/ --quota-bytes 1MiB --endpoints http://127.0.0.1:2379"},
		"name=batch&user=batch&writes=100": {">replaces<", "200", "100", "4 MiB", ">ends<", ">changes<",
			"all 3 members get 300 writes a second"},
		"name=small&keys=all&value-bytes=64KiB":                             {"no change", "--prefix '' --value-bytes 64KiB"},
		"name=freeze&user=a+b&writes=0":                                     {"lets nothing pass: writes", "--for-user 'a b'"},
		"name=tenant-a&keys=prefix&prefix=/a/&quota-bytes=900&quota-keys=0": {"has 950 B already", "has 0 keys already"},
		"name=Bad&writes=1&user=a":                                          {"cannot be set", "the characters a-z"},
		"name=x&writes=many&user=a":                                         {"cannot be set", "Writes, many: give a whole number"},
		"name=x&writes=1":                                                   {"names neither a user nor a prefix"},
		"name=x&user=a":                                                     {"bounds nothing"},
		"name=x&user=a&keys=all&quota-keys=1":                               {"whoever wrote them"},
		"name=x&keys=prefix&writes=1":                                       {"The prefix is missing"},
		"name=x&keys=prefix&prefix=%22a&writes=1":                           {"ends with a quote"},
		"name=x&keys=prefix&prefix=%22%5Cx00%22&writes=1":                   {`"\x00"…`},
		"name=x&user=a&write-bytes=99999999TiB":                             {"it is too large"},
	} {
		body := b.Get("/limits/set?" + query)
		want(t, body, texts...)
		if strings.Contains(body, `method="post"`) {
			t.Errorf("%s: a console that reads has a form", query)
		}
	}
	want(t, b.Get("/limits/set?from=batch"), "Change a limit", `value="200"`, `value="4MiB"`, `name="user" value="batch"`)
	low := newMember()
	c := consoletest.Healthy(3)
	for n := range c.Members {
		consoletest.Of(c, n+1).Config.Level = 1
	}
	low.Conn[quoratepb.Doctor_Collect_FullMethodName] = c
	body := open(t, low, true).Get("/limits/set?name=x&user=a&writes=1")
	want(t, body, "need feature level 2, and level 1 is active")
	if strings.Contains(body, `method="post"`) {
		t.Error("a limit that is refused has a form")
	}
}

// formOf are the fields of the form of a page that changes something.
func formOf(t *testing.T, body string) url.Values {
	t.Helper()
	_, form, found := strings.Cut(body, `<form method="post"`)
	if !found {
		t.Fatalf("no form in %s", body)
	}
	form, _, _ = strings.Cut(form, "</form>")
	fields := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		fields.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return fields
}

// Ensure that a form sets what its preview has shown, once, and nothing if the limit was changed since; that a name must be typed to
// delete; and that a console that reads has no forms.
func TestPages_actions(t *testing.T) {
	m := newMember()
	b := open(t, m, true)
	form := formOf(t, b.Get("/limits/set?name=batch&user=batch&writes=100"))
	code, _, to := b.Post("/limits/set", form)
	if code != http.StatusSeeOther || to != "/limits" || len(m.sets) != 1 || m.sets[0].GetWritesPerSecond() != 100 ||
		m.sets[0].GetUser() != "batch" || m.sets[0].Prefix != nil || m.sets[0].WriteBytesPerSecond != nil {
		t.Errorf("%d, %s, %v", code, to, m.sets)
	}
	if code, body, _ := b.Post("/limits/set", form); code != http.StatusConflict || !strings.Contains(body, "changed since the preview") ||
		len(m.sets) != 1 {
		t.Errorf("an old form: %d", code)
	}
	form.Set("writes", "x")
	if code, _, _ := b.Post("/limits/set", form); code != http.StatusConflict || len(m.sets) != 1 {
		t.Errorf("a wrong form: %d", code)
	}
	everything := formOf(t, b.Get("/limits/set?name=every&keys=all&writes=9"))
	if _, _, to := b.Post("/limits/set", everything); to != "/limits" || m.sets[1].Prefix == nil || len(m.sets[1].Prefix) != 0 {
		t.Errorf("every key: %v", m.sets[1:])
	}
	want(t, b.Get("/limits/delete?name=small"), "Delete the limit small", "values up to 64 KiB", "quorate limit delete small")
	want(t, b.Get("/limits/delete?name=gone"), "There is no limit gone")
	want(t, b.Get("/limits/delete"), "reached from the list")
	for typed, want := range map[string]int{"": http.StatusConflict, "smal": http.StatusConflict, "small": http.StatusSeeOther} {
		if code, _, _ := b.Post("/limits/delete", url.Values{"name": {"small"}, "typed": {typed}}); code != want {
			t.Errorf("typed %q: %d", typed, code)
		}
	}
	if len(m.deaths) != 1 || m.deaths[0] != "small" {
		t.Errorf("deleted are %q", m.deaths)
	}
	if code, body, _ := b.Post("/limits/delete", url.Values{"name": {"small"}, "typed": {"small"}}); code != http.StatusConflict ||
		!strings.Contains(body, "there is no limit of this name") {
		t.Errorf("once more: %d, %s", code, body)
	}
	reads := open(t, m, false)
	if code, _, _ := reads.Post("/limits/delete", url.Values{"name": {"batch"}, "typed": {"batch"}}); code != http.StatusForbidden {
		t.Errorf("a console that reads: %d", code)
	}
}

// Ensure that a quota whose keys are still being counted is told to be set, and not to have failed.
func TestPages_counting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMember()
		m.counts = true
		b := open(t, m, true)
		form := formOf(t, b.Get("/limits/set?name=big&keys=all&quota-keys=9"))
		if code, body, to := b.Post("/limits/set", form); code != http.StatusSeeOther || to != "/limits" {
			t.Errorf("%d, %s: %s", code, to, body)
		}
		want(t, b.Get("/limits"), "being counted")
	})
}

var hidden = regexp.MustCompile(`<input type="hidden"[^>]*>`)

// Ensure that nothing that a member or a reader says is markup, or moves the text.
func TestPages_hostile(t *testing.T) {
	const evil = `"><script>alert(1)</script>` + "\u202e\x00"
	m := newMember()
	for range 300 {
		m.states = append(m.states, &quoratepb.LimitState{Limit: &quoratepb.Limit{Name: evil, User: evil, Prefix: []byte(evil),
			QuotaBytes: proto.Int64(-5)}, UsedBytes: -1 << 62, UsedKeys: 1 << 62, Refused: 1<<64 - 1})
	}
	b := open(t, m, true)
	for _, target := range []string{"/limits", "/limits/set?name=" + url.QueryEscape(evil) + "&user=" + url.QueryEscape(evil) + "&prefix=" +
		url.QueryEscape(evil) + "&writes=" + url.QueryEscape(evil), "/limits/set?from=" + url.QueryEscape(evil),
		"/limits/delete?name=" + url.QueryEscape(evil)} {
		body := hidden.ReplaceAllString(b.Get(target), "") // fields that nobody sees keep what they are
		for _, text := range []string{"<script>alert", "\u202e", "\x00", "NaN"} {
			if strings.Contains(body, text) {
				t.Errorf("%s has %q", target, text)
			}
		}
	}
}
