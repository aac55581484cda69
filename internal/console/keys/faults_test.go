package keys_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/console"
	"github.com/quorate/quorate/internal/console/keys"
)

// between is a connection whose calls something comes before. An error of it is that of the call.
type between struct {
	grpc.ClientConnInterface
	before func(method string) error
}

func (b *between) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	if err := b.before(method); err != nil {
		return err
	}
	return b.ClientConnInterface.Invoke(ctx, method, args, reply, options...)
}

func (b *between) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if err := b.before(method); err != nil {
		return nil, err
	}
	return b.ClientConnInterface.NewStream(ctx, desc, method, options...)
}

// over serves a console by a connection.
func (w *world) over(before func(method string) error) func(method, target string, pairs ...string) string {
	w.t.Helper()
	c, err := console.New(console.Options{
		Conn: &between{w.client.ActiveConnection(), before}, Member: "m", Pages: keys.Pages(), Admin: true, MemoryBytes: 1 << 20,
		Enter:  func(r *http.Request) (context.Context, func()) { return r.Context(), func() {} },
		Lend:   func(*http.Request, int) (func(), error) { return func() {}, nil },
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return func(method, target string, pairs ...string) string {
		form := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://localhost")
		answer := httptest.NewRecorder()
		c.Handler().ServeHTTP(answer, r)
		if answer.Code == http.StatusSeeOther {
			return "done"
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.Code >= 500 {
			w.t.Errorf("%s: %d, %v", target, answer.Code, err)
		}
		return string(body)
	}
}

// Ensure that a write which comes between the look of an action and its own is not overwritten.
func TestKeys_intruder(t *testing.T) {
	w := start(t)
	for _, row := range []struct {
		path, key, says string
		form            func(revision int64) []string
	}{
		{"/keys/edit", "edited", "Somebody wrote the key", func(revision int64) []string {
			return []string{"key", "edited", "mod", fmt.Sprint(revision), "value", "mine"}
		}},
		{"/keys/new", "created", "exists", func(int64) []string { return []string{"key", "created", "value", "mine"} }},
		{"/keys/delete", "deleted", "written or deleted meanwhile", func(revision int64) []string {
			return []string{"key", "deleted", "mod", fmt.Sprint(revision), "typed", "deleted"}
		}},
	} {
		revision := int64(0)
		if row.key != "created" {
			revision = w.put(row.key, "before")
		}
		ask := w.over(func(method string) error {
			if strings.HasSuffix(method, "/Txn") {
				w.put(row.key, "theirs")
			}
			return nil
		})
		page := ask(http.MethodPost, row.path, row.form(revision)...)
		wants(t, row.path, page, row.says)
		if got, _ := w.value(row.key); got != "theirs" {
			t.Errorf("%s: the value is %q", row.path, got)
		}
	}
}

// Ensure that pages show what they have if some calls fail.
func TestKeys_partly(t *testing.T) {
	w := start(t)
	w.put("/a/one", "v")
	if _, err := w.client.Grant(w.ctx, 600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		fails, target string
		says          []string
	}{
		{"/Versions", at("/keys", "prefix", "/a/"), []string{"1 key begins with", "one", "not read"}},
		{"/LeaseTimeToLive", "/keys/leases", []string{"1 lease;", "not asked", "no leader"}},
		{"/RangeStream", at("/keys", "prefix", "/a/"), []string{"No answer in time", "no leader", "Keys that begin with"}},
		{"/Watch", at("/keys/watch", "from", "1"), []string{"No answer in time", "no leader"}},
		{"/Deleted", at("/keys/deleted"), []string{"No answer in time", "no leader"}},
		{"/Versions", at("/keys/key", "key", "/a/one"), []string{"No answer in time", "no leader"}},
		{"/LeaseLeases", "/keys/leases", []string{"No answer in time", "no leader"}},
	} {
		ask := w.over(func(method string) error {
			if strings.HasSuffix(method, row.fails) {
				return status.Error(codes.Unavailable, "etcdserver: no leader")
			}
			return nil
		})
		wants(t, row.target+" without "+row.fails, ask(http.MethodGet, row.target), row.says...)
	}
}
