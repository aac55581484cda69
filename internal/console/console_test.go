package console_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/console"
	"github.com/quorate/quorate/internal/console/page"
)

// member answers calls by functions.
type member struct {
	calls map[string]func(ctx context.Context, args any) (proto.Message, error)
}

func (m *member) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	call, ok := m.calls[method]
	if !ok {
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	answer, err := call(ctx, args)
	if err != nil {
		return err
	}
	proto.Merge(reply.(proto.Message), answer)
	return nil
}

func (m *member) NewStream(_ context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

const (
	rangeMethod = "/etcdserverpb.KV/Range"
	putMethod   = "/etcdserverpb.KV/Put"
	loginMethod = "/etcdserverpb.Auth/Authenticate"
)

// sample is a page with one section, and one action.
func sample(load func(context.Context, *page.Request) (any, error)) page.Page {
	return page.Page{
		Path: "/sample", Name: "Sample",
		Templates: fstest.MapFS{"s.html": {Data: []byte(`{{define "s"}}<p>{{.}}</p>{{end}}`)}},
		Sections: []page.Section{{ID: "one", Title: "One", Live: true, Template: "s", Load: load,
			Command: page.Is("member", "list")}},
		Actions: []page.Action{{Path: "/sample/put", Do: func(ctx context.Context, r *page.Request) (page.Outcome, error) {
			_, err := pb.NewKVClient(r.Conn).Put(ctx, &pb.PutRequest{Key: []byte(r.Form.Get("key"))})
			return page.Outcome{To: "/sample", Said: "Written by " + r.Form.Get("key")}, err
		}}},
	}
}

type setting struct {
	console.Options
	lent, returned atomic.Int64
}

// serve makes a console with one page.
func serve(t *testing.T, m *member, p page.Page, more ...func(*setting)) (http.Handler, *setting) {
	t.Helper()
	s := &setting{Options: console.Options{
		Conn: m, Member: "m1", Version: "1.0", Pages: []page.Page{p}, MemoryBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
		Enter: func(r *http.Request) (context.Context, func()) { return r.Context(), func() {} },
	}}
	s.Lend = func(_ *http.Request, bytes int) (func(), error) {
		s.lent.Add(int64(bytes))
		return func() { s.returned.Add(int64(bytes)) }, nil
	}
	for _, change := range more {
		change(s)
	}
	c, err := console.New(s.Options)
	if err != nil {
		t.Fatal(err)
	}
	return c.Handler(), s
}

func get(h http.Handler, target string, more ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "localhost"
	for _, change := range more {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func post(h http.Handler, target string, form url.Values, more ...func(*http.Request)) *httptest.ResponseRecorder {
	return get(h, target, append([]func(*http.Request){func(r *http.Request) {
		r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(form.Encode()))
		r.ContentLength = int64(len(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://localhost")
	}}, more...)...)
}

func says(text string) func(context.Context, *page.Request) (any, error) {
	return func(context.Context, *page.Request) (any, error) { return text, nil }
}

// Ensure that a page has its sections, that nothing of a member is markup, and that memory for it is given back.
func TestConsole_page(t *testing.T) {
	h, s := serve(t, &member{}, sample(says(`<script>alert(1)</script>`)))
	w := get(h, "/sample")
	body := w.Body.String()
	if w.Code != http.StatusOK || strings.Contains(body, "<script>a") || !strings.Contains(body, "&lt;script&gt;alert(1)") {
		t.Errorf("%d: %s", w.Code, body)
	}
	if !strings.Contains(body, "quorate member list") {
		t.Error("the page has no command")
	}
	if s.lent.Load() == 0 || s.lent.Load() != s.returned.Load() {
		t.Errorf("%d bytes were lent, %d given back", s.lent.Load(), s.returned.Load())
	}
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	if w := get(h, "/sample/gone"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "no such page") {
		t.Errorf("a page that is not there: %d", w.Code)
	}
}

// Ensure that a page without memory is refused, and says so.
func TestConsole_page_noMemory(t *testing.T) {
	h, _ := serve(t, &member{}, sample(says("text")), func(s *setting) {
		s.Lend = func(*http.Request, int) (func(), error) { return nil, errors.New("full") }
	})
	if w := get(h, "/sample"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d", w.Code)
	}
}

// Ensure that pages elsewhere load nothing, and that a name that somebody lets lead here is refused.
func TestConsole_guard(t *testing.T) {
	h, _ := serve(t, &member{}, sample(says("text")), func(s *setting) { s.Hosts, s.Admin = []string{"db.example"}, true })
	header := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for _, c := range []struct {
		name string
		as   func(*http.Request)
		want int
	}{
		{"by name", host("localhost:2381"), http.StatusOK},
		{"by address", host("10.1.2.3:2381"), http.StatusOK},
		{"by address of IPv6", host("[::1]:2381"), http.StatusOK},
		{"by a name that is allowed", host("DB.example:2381"), http.StatusOK},
		{"by a name of somebody else", host("evil.example"), http.StatusMisdirectedRequest},
		{"by a name that looks like an address", host("127.0.0.1.evil.example"), http.StatusMisdirectedRequest},
		{"a link elsewhere", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), http.StatusOK},
		{"a script elsewhere", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"), http.StatusForbidden},
		{"an image at another port", header("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"), http.StatusForbidden},
	} {
		if w := get(h, "/sample", c.as); w.Code != c.want {
			t.Errorf("%s: got %d, want %d", c.name, w.Code, c.want)
		}
	}
	for _, as := range []func(*http.Request){
		header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), header("Origin", "https://evil.example"),
		header("Origin", "null"), header("Origin", ""),
	} {
		if w := post(h, "/sample/put", url.Values{"key": {"k"}}, as); w.Code != http.StatusForbidden {
			t.Errorf("a form elsewhere: got %d", w.Code)
		}
	}
}

// Ensure that a console that reads has no actions, and that pages of one that administers change nothing either.
func TestConsole_admin(t *testing.T) {
	var written []string
	m := &member{calls: map[string]func(context.Context, any) (proto.Message, error){
		putMethod: func(_ context.Context, args any) (proto.Message, error) {
			written = append(written, string(args.(*pb.PutRequest).Key))
			return &pb.PutResponse{}, nil
		},
	}}
	sly := sample(func(ctx context.Context, r *page.Request) (any, error) {
		_, err := pb.NewKVClient(r.Conn).Put(ctx, &pb.PutRequest{Key: []byte("sly")})
		return "", err
	})
	reads, _ := serve(t, m, sly)
	if w := post(reads, "/sample/put", url.Values{"key": {"k"}}); w.Code != http.StatusForbidden || len(written) > 0 {
		t.Errorf("a console that reads: got %d, %q was written", w.Code, written)
	}
	admin, s := serve(t, m, sly, func(s *setting) { s.Admin = true })
	if w := get(admin, "/sample"); len(written) > 0 || !strings.Contains(w.Body.String(), "Not permitted") {
		t.Errorf("a page wrote %q: %s", written, w.Body)
	}
	w := post(admin, "/sample/put", url.Values{"key": {"k"}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/sample" || len(written) != 1 {
		t.Errorf("got %d to %q, %q was written", w.Code, w.Header().Get("Location"), written)
	}
	next := get(admin, "/sample", func(r *http.Request) {
		for _, c := range w.Result().Cookies() {
			r.AddCookie(c)
		}
	})
	if !strings.Contains(next.Body.String(), "Written by k") {
		t.Errorf("the next page does not say what was done: %s", next.Body)
	}
	for name, as := range map[string]func(*http.Request){
		"of 5 MiB":             func(r *http.Request) { r.ContentLength = 5 << 20 },
		"of a length not told": func(r *http.Request) { r.ContentLength = -1 },
		"longer than it says": func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(strings.Repeat("k", 5<<20)))
		},
	} {
		if w := post(admin, "/sample/put", url.Values{"key": {"k"}}, as); w.Code != http.StatusBadRequest || len(written) != 1 {
			t.Errorf("a form %s: got %d", name, w.Code)
		}
	}
	if s.lent.Load() != s.returned.Load() {
		t.Errorf("%d bytes were lent, %d given back", s.lent.Load(), s.returned.Load())
	}
	if w := get(admin, "/sample?q="+strings.Repeat("k", 9<<10)); w.Code != http.StatusRequestURITooLong {
		t.Errorf("a query of 9 KiB: got %d", w.Code)
	}
}

// Ensure that a file is sent as one that no browser shows as a page, and that its memory is given back.
func TestConsole_file(t *testing.T) {
	p := sample(says("text"))
	p.Files = []page.File{{Path: "/sample/file", Load: func(_ context.Context, r *page.Request) (page.Contents, error) {
		if r.Query.Has("gone") {
			return page.Contents{}, status.Error(codes.InvalidArgument, "There is no such file.")
		}
		if r.Query.Has("user") {
			return page.Contents{}, rpctypes.ErrGRPCUserEmpty
		}
		return page.Contents{Name: "a.txt", Body: []byte("<script>a</script>")}, nil
	}}}
	h, s := serve(t, &member{}, p)
	w := get(h, "/sample/file")
	if w.Code != http.StatusOK || w.Body.String() != "<script>a</script>" ||
		w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || w.Header().Get("X-Content-Type-Options") != "nosniff" ||
		w.Header().Get("Content-Disposition") != `attachment; filename="a.txt"` {
		t.Errorf("%d: %v, %s", w.Code, w.Header(), w.Body)
	}
	if w := get(h, "/sample/file?gone"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "There is no such file.") {
		t.Errorf("a file that is gone: %d, %s", w.Code, w.Body)
	}
	if w := get(h, "/sample/file?user"); w.Code != http.StatusSeeOther {
		t.Errorf("without a user: %d", w.Code)
	}
	if s.lent.Load() == 0 || s.lent.Load() != s.returned.Load() {
		t.Errorf("%d bytes were lent, %d given back", s.lent.Load(), s.returned.Load())
	}
	h, _ = serve(t, &member{}, p, func(s *setting) {
		s.Lend = func(*http.Request, int) (func(), error) { return nil, errors.New("full") }
	})
	if w := get(h, "/sample/file"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("without memory: %d", w.Code)
	}
}

// Ensure that an action may show something in the place of a page, and that a fault leads back to the page of its form.
func TestConsole_instead(t *testing.T) {
	p := sample(says("text"))
	p.Actions = []page.Action{{Path: "/sample/put", Do: func(_ context.Context, r *page.Request) (page.Outcome, error) {
		if r.Form.Has("fault") {
			return page.Outcome{}, page.FormError("Nothing was changed.")
		}
		return page.Outcome{Template: "s", Data: strings.Repeat(r.Form.Get("text"), 1+len(r.Form["large"])<<20)}, nil
	}}}
	h, _ := serve(t, &member{}, p, func(s *setting) { s.Admin = true })
	w := post(h, "/sample/put", url.Values{"text": {"<b>"}})
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "<p>&lt;b&gt;</p>") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if w := post(h, "/sample/put", url.Values{"text": {"<b>"}, "large": {""}}); w.Code != http.StatusConflict || w.Body.Len() > 1<<20 {
		t.Errorf("an outcome of more than a section may have: %d, %d bytes", w.Code, w.Body.Len())
	}
	for referer, want := range map[string]string{
		"http://localhost/sample?a=b": `href="/sample?a=b"`, "https://evil.example/x": `href="/sample"`, "": `href="/sample"`,
	} {
		w := post(h, "/sample/put", url.Values{"fault": {""}}, func(r *http.Request) { r.Header.Set("Referer", referer) })
		if !strings.Contains(w.Body.String(), want+">Go back") {
			t.Errorf("from %s: %s", referer, w.Body)
		}
	}
}

// Ensure that users log in with the store's password, that the token goes with their calls, and that a login leads to no other
// place.
func TestConsole_login(t *testing.T) {
	m := &member{calls: map[string]func(context.Context, any) (proto.Message, error){
		loginMethod: func(_ context.Context, args any) (proto.Message, error) {
			if r := args.(*pb.AuthenticateRequest); r.Name != "ann" || r.Password != "right" {
				return nil, rpctypes.ErrGRPCAuthFailed
			}
			return &pb.AuthenticateResponse{Token: "t.1"}, nil
		},
		rangeMethod: func(ctx context.Context, _ any) (proto.Message, error) {
			sent, _ := metadata.FromOutgoingContext(ctx)
			switch token := sent.Get(rpctypes.TokenFieldNameGRPC); {
			case len(token) == 0:
				return nil, rpctypes.ErrGRPCUserEmpty
			case token[0] != "t.1":
				return nil, rpctypes.ErrGRPCInvalidAuthToken
			}
			return &pb.RangeResponse{Count: 7}, nil
		},
	}}
	h, _ := serve(t, m, sample(func(ctx context.Context, r *page.Request) (any, error) {
		answer, err := pb.NewKVClient(r.Conn).Range(ctx, &pb.RangeRequest{Key: []byte("k")})
		return r.User + " sees " + page.Count(answer.GetCount()), err
	}), func(s *setting) { s.Encrypted = true })
	if w := get(h, "/sample?a=b"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/login?next=%2Fsample%3Fa%3Db" {
		t.Fatalf("without a login: %d to %q", w.Code, w.Header().Get("Location"))
	}
	if w := post(h, "/login", url.Values{"name": {"ann"}, "password": {"wrong"}}); w.Code != http.StatusForbidden ||
		len(w.Result().Cookies()) > 0 || strings.Contains(w.Body.String(), "wrong</") {
		t.Errorf("a wrong password: got %d, %v", w.Code, w.Result().Cookies())
	}
	for next, want := range map[string]string{
		"/sample?a=b": "/sample?a=b", "https://evil.example/": "/", "//evil.example/": "/", `/\evil.example`: "/", "sample": "/", "": "/",
	} {
		w := post(h, "/login", url.Values{"name": {"ann"}, "password": {"right"}, "next": {next}})
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("next %q: %d to %q, want %q", next, w.Code, w.Header().Get("Location"), want)
		}
	}
	w := post(h, "/login", url.Values{"name": {"ann"}, "password": {"right"}})
	cookie := w.Result().Cookies()[0]
	if !strings.HasPrefix(cookie.Name, "__Host-") || !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v", cookie)
	}
	with := func(c *http.Cookie) func(*http.Request) { return func(r *http.Request) { r.AddCookie(c) } }
	if w := get(h, "/sample", with(cookie)); !strings.Contains(w.Body.String(), "ann sees 7") {
		t.Errorf("logged in: %s", w.Body)
	}
	other := *cookie
	other.Value = strings.Replace(cookie.Value, "t.1", "t.2", 1)
	if w := get(h, "/sample", with(&other)); w.Code != http.StatusSeeOther {
		t.Errorf("with a token that ended: got %d", w.Code)
	}
	forged := *cookie
	forged.Value = strings.Replace(cookie.Value, ".YW5u.", ".cm9vdA.", 1) // root, with the token of ann
	if w := get(h, "/sample", with(&forged)); forged.Value == cookie.Value || w.Code != http.StatusSeeOther {
		t.Errorf("with the name of another user: got %d", w.Code)
	}
	if w := post(h, "/logout", nil, with(cookie)); w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("logged out: the cookie is %v", w.Result().Cookies()[0])
	}
}

// Ensure that a section that does not come in time holds up neither the page nor the other sections, and is shown as it was.
func TestConsole_deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs, denied atomic.Bool
		p := sample(func(ctx context.Context, _ *page.Request) (any, error) {
			switch {
			case denied.Load():
				return nil, status.Error(codes.PermissionDenied, "no longer")
			case hangs.Load():
				<-ctx.Done()
				return nil, status.FromContextError(ctx.Err()).Err()
			}
			return "as it was", nil
		})
		p.Sections = append(p.Sections, page.Section{ID: "two", Template: "s", Load: says("quick")})
		h, _ := serve(t, &member{}, p)
		get(h, "/sample")
		hangs.Store(true)
		began := time.Now()
		body := get(h, "/sample").Body.String()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the page took %v", took)
		}
		if !strings.Contains(body, "as it was") || !strings.Contains(body, "was known at 2000-01-01") || !strings.Contains(body, "quick") {
			t.Errorf("got %s", body)
		}
		if body := get(h, "/sample?other=1").Body.String(); strings.Contains(body, "as it was") || !strings.Contains(body, "No answer in time") {
			t.Errorf("another page: got %s", body)
		}
		denied.Store(true)
		get(h, "/sample")
		denied.Store(false)
		if body := get(h, "/sample").Body.String(); strings.Contains(body, "as it was") {
			t.Error("what a user may not see any more is shown as it was")
		}
		synctest.Wait()
	})
}

// watch looks at a page until its browser goes, and returns the events that came.
func watch(h http.Handler, target string, d time.Duration, more ...func(*http.Request)) (events []string) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	in, out := io.Pipe()
	go func() {
		r := httptest.NewRequest(http.MethodGet, target, nil).WithContext(ctx)
		r.Host = "localhost"
		for _, change := range more {
			change(r)
		}
		h.ServeHTTP(&pipe{out, http.Header{}}, r)
		out.Close()
	}()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			events = append(events, name)
		}
	}
	return events
}

type pipe struct {
	io.Writer
	header http.Header
}

func (p *pipe) Header() http.Header              { return p.header }
func (p *pipe) WriteHeader(int)                  {}
func (p *pipe) Flush()                           {}
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

// Ensure that looks at a live page share what is rendered, that a section is sent again only if it differs, and that many looks
// which differ are served more seldom.
func TestConsole_live(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads, text atomic.Int64
		p := sample(func(context.Context, *page.Request) (any, error) {
			loads.Add(1)
			return text.Load(), nil
		})
		h, _ := serve(t, &member{}, p)
		done := make(chan []string)
		const looks = 200
		for range looks {
			go func() { done <- watch(h, "/sample?live", 9*time.Second) }()
		}
		time.AfterFunc(5*time.Second, func() { text.Store(1) })
		for range looks {
			events := <-done
			sections := 0
			for _, e := range events {
				if e == "section" {
					sections++
				}
			}
			if sections != 2 || len(events) != sections+5 {
				t.Fatalf("got %q", events)
			}
		}
		if n := loads.Load(); n > 10 {
			t.Errorf("%d looks loaded a section %d times in 9 seconds", looks, n)
		}
		loads.Store(0)
		for i := range looks {
			go func() { done <- watch(h, "/sample?live&look="+page.Count(int64(i)), 59*time.Second) }()
		}
		for range looks {
			<-done
		}
		if n := loads.Load(); n < looks || n > 60*20+looks {
			t.Errorf("%d looks that differ loaded sections %d times in 59 seconds", looks, n)
		}
	})
}
