package console_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/console/page"
)

// Ensure that a section whose page has a fault ends neither the member nor the other sections.
func TestConsole_page_panics(t *testing.T) {
	p := sample(func(context.Context, *page.Request) (any, error) { panic("a fault of a page") })
	p.Sections = append(p.Sections, page.Section{ID: "two", Template: "s", Load: says("quick")},
		page.Section{ID: "three", Template: "s", Load: says("whole"), Command: func(*page.Request) string { panic("of a command") }})
	h, _ := serve(t, &member{}, p)
	body := get(h, "/sample").Body.String()
	if strings.Count(body, "This section cannot be shown") != 2 || !strings.Contains(body, "quick") {
		t.Errorf("got %s", body)
	}
}

// Ensure that a fault in a goroutine that a page has begun, in an action or in a file ends neither the member nor the answer.
func TestConsole_faults(t *testing.T) {
	p := sample(func(context.Context, *page.Request) (any, error) {
		wait := page.Go(func() { panic("a fault of a goroutine") })
		wait()
		return "whole", nil
	})
	p.Sections = append(p.Sections, page.Section{ID: "two", Template: "s", Load: says("quick")})
	p.Actions = []page.Action{{Path: "/sample/do", Do: func(context.Context, *page.Request) (page.Outcome, error) {
		panic("a fault of an action")
	}}}
	p.Files = []page.File{{Path: "/sample/file", Load: func(context.Context, *page.Request) (page.Contents, error) {
		panic("a fault of a file")
	}}}
	var given atomic.Int64 // sections are shown at once
	var log bytes.Buffer
	h, _ := serve(t, &member{}, p, func(s *setting) {
		s.Admin, s.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
		s.Enter = func(r *http.Request) (context.Context, func()) { return r.Context(), func() { given.Add(1) } }
	})
	if body := get(h, "/sample").Body.String(); strings.Count(body, "This section cannot be shown") != 1 || !strings.Contains(body, "quick") {
		t.Errorf("a section: got %s", body)
	}
	if !strings.Contains(log.String(), "a fault of a goroutine") || !strings.Contains(log.String(), "faults_test.go") {
		t.Errorf("the log does not say where: %s", log.String())
	}
	given.Swap(0)
	if w := post(h, "/sample/do", url.Values{}); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "may have been done all the same") {
		t.Errorf("an action: got %d, %s", w.Code, w.Body)
	}
	if w := get(h, "/sample/file"); w.Code != http.StatusNotFound {
		t.Errorf("a file: got %d, %s", w.Code, w.Body)
	}
	if n := given.Load(); n != 2 {
		t.Errorf("what two calls hold was given back %d times", n)
	}
}

// Ensure that a reader learns how long was waited, which a page, a login and a form do not do alike, and that a form without an
// answer may have been done.
func TestConsole_noAnswer(t *testing.T) {
	late := status.Error(codes.Unavailable, "no leader")
	m := &member{calls: map[string]func(context.Context, any) (proto.Message, error){
		loginMethod: func(context.Context, any) (proto.Message, error) { return nil, late },
	}}
	p := sample(func(context.Context, *page.Request) (any, error) { return nil, late })
	p.Actions = []page.Action{{Path: "/sample/do", Do: func(context.Context, *page.Request) (page.Outcome, error) {
		return page.Outcome{}, late
	}}}
	h, _ := serve(t, m, p, func(s *setting) { s.Admin = true })
	const done = "may have been done all the same"
	if body := get(h, "/sample").Body.String(); !strings.Contains(body, "within 2 seconds (no leader)") || strings.Contains(body, done) {
		t.Errorf("a page: got %s", body)
	}
	if body := post(h, "/sample/do", url.Values{}).Body.String(); !strings.Contains(body, "within 10 seconds (no leader)") ||
		!strings.Contains(body, done) {
		t.Errorf("a form: got %s", body)
	}
	body := post(h, "/login", url.Values{"name": {"ann"}, "password": {"right"}}).Body.String()
	if !strings.Contains(body, "within 5 seconds (no leader)") || strings.Contains(body, done) {
		t.Errorf("a login: got %s", body)
	}
}

// Ensure that whoever asks for the same again and again fills no log: with sections that are too long, or forms that lose.
func TestConsole_logs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sample(says(strings.Repeat("x", 2<<20)))
		p.Actions = []page.Action{{Path: "/sample/put", Do: func(_ context.Context, r *page.Request) (page.Outcome, error) {
			if r.Form.Get("key") == "" {
				return page.Outcome{}, page.FormError("no key")
			}
			return page.Outcome{Template: "s", Data: "it was written meanwhile"}, nil
		}}}
		var log bytes.Buffer
		h, _ := serve(t, &member{}, p, func(s *setting) {
			s.Admin, s.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
		})
		for range 50 {
			get(h, "/sample")
			post(h, "/sample/put", url.Values{"key": {"k"}})
			post(h, "/sample/put", url.Values{})
		}
		<-time.After(2 * time.Second)
		post(h, "/sample/put", url.Values{"key": {"k"}})
		synctest.Wait()
		for text, want := range map[string]int{"cannot show a section": 1, "not done by the console": 2, "suppressed=99": 1} {
			if got := strings.Count(log.String(), text); got != want {
				t.Errorf("%q: %d times, want %d: %.2000s", text, got, want, log.String())
			}
		}
	})
}
