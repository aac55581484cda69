package objects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
	"github.com/quorate/quorate/internal/storage/objects/retry"
)

// Ensure that each server is a place like others, also where a proxy hides conditions; versitygw sees then that a signed header
// is missing.
func TestConformance(t *testing.T) {
	for _, v := range servers(t) {
		for _, conditions := range []bool{true, false} {
			if v.checks && !conditions {
				continue
			}
			t.Run(fmt.Sprintf("%s conditions %v", v.name, conditions), func(t *testing.T) {
				objectstest.Run(t, func(t *testing.T) objects.Store {
					address := v.address
					if !conditions {
						p := newProxy(t, v.address)
						p.inject(-1, always, ignoreConditions)
						address = p.address()
					}
					return open(t, address, v.bucket(t))
				}, objectstest.Options{Large: 12 << 20, Overwrites: !conditions})
			})
		}
	}
}

// at is an operation that a fault meets.
type at struct {
	name  string
	match func(*http.Request) bool
	do    func(ctx context.Context, s objects.Store) error
}

var content = bytes.Repeat([]byte("some bytes of an object\n"), 4000)

var operations = []at{
	{"put", isPut, func(ctx context.Context, s objects.Store) error {
		return s.Put(ctx, "new", bytes.NewReader(content), int64(len(content)))
	}},
	{"get", isGet, func(ctx context.Context, s objects.Store) error {
		body, err := s.Get(ctx, "old", 0, -1)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(body)
		if err == nil && !bytes.Equal(got, content) {
			err = objects.ErrDamaged
		}
		return errors.Join(err, body.Close())
	}},
	{"list", isList, func(ctx context.Context, s objects.Store) error {
		found, _, err := s.List(ctx, "", "", 10)
		if err == nil && (len(found) < 2 || found[0].Name != "old" || found[1].Name != "old2") {
			err = fmt.Errorf("%w: listed %v", objects.ErrDamaged, found)
		}
		return err
	}},
	{"delete", isDelete, func(ctx context.Context, s objects.Store) error { return s.Delete(ctx, "old2") }},
}

// faults are all that the proxy does, with the kind that a caller must be told; nil where the operation must succeed all the
// same.
var faults = []struct {
	name  string
	fault fault
	want  error
	only  string // operations that the fault can meet; empty are all
}{
	{"slow down", refuse(503, "SlowDown"), objects.ErrBusy, ""},
	{"internal error", refuse(500, "InternalError"), objects.ErrBusy, ""},
	{"bad gateway without words", refuse(502, ""), objects.ErrBusy, ""},
	{"conflict", refuse(409, "ConditionalRequestConflict"), objects.ErrBusy, "put"},
	{"name taken", refuse(412, "PreconditionFailed"), objects.ErrExists, "put"},
	{"clock", refuse(403, "RequestTimeTooSkewed"), objects.ErrClock, ""},
	{"denied", refuse(403, "AccessDenied"), objects.ErrDenied, ""},
	{"full", refuse(507, "InsufficientStorage"), objects.ErrFull, "put"},
	// net/http asks again by itself for what changes nothing, once, on another connection.
	{"lost before", lostBefore, objects.ErrUnreachable, "put"},
	{"lost before", lostBefore, objects.ErrUnreachable, "delete"},
	{"lost before", lostBefore, nil, "get"},
	{"lost before", lostBefore, nil, "list"},
	{"lost after", lostAfter, objects.ErrUnreachable, "put"},
	{"lost after", lostAfter, objects.ErrUnreachable, "delete"},
	{"lost after", lostAfter, nil, "get"},
	{"lost after", lostAfter, nil, "list"},
	{"answer cut", cutAnswer, objects.ErrUnreachable, "get"},
	{"list cut", cutAnswer, objects.ErrUnreachable, "list"},
	{"answer changed", changeAnswer(flip), objects.ErrDamaged, "get"}, // the caller's own sum tells
	{"list out of order", changeAnswer(reorder), objects.ErrBusy, "list"},
	{"body changed", changeRequest(flip), objects.ErrBusy, "put"},
	{"body cut", changeRequest(func(b []byte) []byte { return b[:len(b)/2] }), objects.ErrUnreachable, "put"},
	{"slow", slow, nil, ""},
	{"conditions ignored", ignoreConditions, nil, "put"},
}

// Ensure that each fault at each operation has the kind that callers act on, that a Put leaves the object whole or not there,
// and that PutOnce and a second attempt bring the operation to its end.
func TestFaults(t *testing.T) {
	for _, v := range servers(t) {
		t.Run(v.name, func(t *testing.T) {
			for _, f := range faults {
				for _, o := range operations {
					if f.only != "" && f.only != o.name || f.name == "body changed" && !v.checks ||
						f.name == "conditions ignored" && v.checks {
						continue
					}
					meet(t, v, f.name+" at a "+o.name, f.fault, f.want, o)
				}
			}
		})
	}
}

func meet(t *testing.T, v *server, name string, f fault, want error, o at) {
	t.Helper()
	p := newProxy(t, v.address)
	s := open(t, p.address(), v.bucket(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, old := range []string{"old", "old2"} {
		if err := s.Put(ctx, old, bytes.NewReader(content), int64(len(content))); err != nil {
			t.Fatalf("%s: before: %v", name, err)
		}
	}
	p.inject(1, o.match, f)
	err := o.do(ctx, s)
	if p.struck() != 1 {
		t.Errorf("%s: the fault struck %d times", name, p.struck())
	}
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", name, err, want)
	}
	t.Logf("%-40s %v", name, err)
	p.heal()
	if o.name != "put" {
		if err := o.do(ctx, s); err != nil {
			t.Errorf("%s: once more: %v", name, err)
		}
		return
	}
	if same, err := objects.Compare(ctx, s, "new", bytes.NewReader(content), int64(len(content))); err == nil && !same ||
		err != nil && !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("%s: the object is there in part: %v", name, err)
	}
	if err := objects.PutOnce(ctx, s, "new", bytes.NewReader(content), int64(len(content))); err != nil {
		t.Errorf("%s: once more: %v", name, err)
	}
}

// Ensure that a writer whose every request is lost, one after another, before and after the server did the work, gets all its
// objects there, whole and once: a small one, an empty one and one of three parts.
func TestEachRequestIsLost(t *testing.T) {
	large := make([]byte, 12<<20)
	chance := rand.NewChaCha8([32]byte{7})
	_, _ = chance.Read(large)
	all := map[string][]byte{"a": content, "b": {}, "c": large}
	for _, v := range servers(t) {
		for name, f := range map[string]fault{"before": lostBefore, "after": lostAfter} {
			t.Run(v.name+" "+name, func(t *testing.T) {
				total := 1
				for n := 0; n < total; n++ {
					p := newProxy(t, v.address)
					s := open(t, p.address(), v.bucket(t))
					count := -1
					p.inject(1, func(*http.Request) bool {
						count++
						return count == n
					}, f)
					again := retry.New(s, retry.Policy{Attempts: 4, First: 1, Most: 1},
						func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, func() float64 { return 0 })
					for _, name := range []string{"a", "b", "c"} {
						if err := objects.PutOnce(t.Context(), again, name, bytes.NewReader(all[name]),
							int64(len(all[name]))); err != nil {
							t.Errorf("request %d is lost: put %s: %v", n, name, err)
						}
					}
					total = max(total, len(p.requests()))
					p.heal()
					check(t, s, all, fmt.Sprintf("request %d is lost", n))
				}
				if total < 12 {
					t.Errorf("there were %d requests only", total)
				}
				t.Logf("%d requests, each lost once", total)
			})
		}
	}
}

func check(t *testing.T, s objects.Store, all map[string][]byte, when string) {
	t.Helper()
	found, more, err := s.List(t.Context(), "", "", 10)
	if err != nil || more || len(found) != len(all) {
		t.Errorf("%s: listed %v, %v, %v", when, found, more, err)
	}
	for name, want := range all {
		if same, err := objects.Compare(t.Context(), s, name, bytes.NewReader(want), int64(len(want))); !same || err != nil {
			t.Errorf("%s: %s is another: %v", when, name, err)
		}
	}
}

// Ensure that a body that breaks off again and again goes on where it ended.
func TestBodiesGoOn(t *testing.T) {
	for _, v := range servers(t) {
		p := newProxy(t, v.address)
		s := open(t, p.address(), v.bucket(t))
		if err := s.Put(t.Context(), "o", bytes.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
		p.inject(8, isGet, cutAnswer)
		again := retry.New(s, retry.Policy{Attempts: 4, First: 1, Most: 1},
			func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, func() float64 { return 0 })
		same, err := objects.Compare(t.Context(), again, "o", bytes.NewReader(content), int64(len(content)))
		if !same || err != nil || p.struck() != 8 {
			t.Errorf("%s: %v, %v after %d cuts", v.name, same, err, p.struck())
		}
	}
}
