// Package objectstest has the tests that each place for objects must pass (Run), and a place with faults (Place). Only tests
// and the simulator import it.
package objectstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/storage/objects"
)

// Options say what a place is known not to do, or what else to try.
type Options struct {
	// Large is the size of an object that the place takes in several parts; 0 leaves that out.
	Large int64
	// Overwrites says that two writers at once may both succeed: the server knows no conditional writes.
	Overwrites bool
}

// Run tests a place. Open returns an empty one.
func Run(t *testing.T, open func(t *testing.T) objects.Store, o Options) {
	for name, test := range map[string]func(*testing.T, objects.Store, Options){
		"life": testLife, "ranges": testRanges, "lists": testLists, "names": testNames, "taken": testTaken, "once": testOnce,
		"body": testBody, "writers": testWriters, "context": testContext, "large": testLarge,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t), o) })
	}
}

func put(t *testing.T, s objects.Store, name, content string) {
	t.Helper()
	if err := s.Put(t.Context(), name, strings.NewReader(content), int64(len(content))); err != nil {
		t.Fatalf("put %s: %v", name, err)
	}
}

func get(t *testing.T, s objects.Store, name string, offset, length int64) string {
	t.Helper()
	body, err := s.Get(t.Context(), name, offset, length)
	if err != nil {
		t.Fatalf("get %s: %v", name, err)
	}
	content, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return string(content)
}

// testLife follows objects from a Put to a Delete.
func testLife(t *testing.T, s objects.Store, _ Options) {
	for _, content := range []string{"", "x", "some bytes\x00\xff\n"} {
		const name = "base/c1/7-ab.json"
		absent(t, s, name)
		put(t, s, name, content)
		if got := get(t, s, name, 0, -1); got != content {
			t.Errorf("got %q, want %q", got, content)
		}
		info, err := s.Stat(t.Context(), name)
		if err != nil || info.Name != name || info.Size != int64(len(content)) {
			t.Errorf("stat: %+v, %v", info, err)
		}
		for range 2 {
			if err := s.Delete(t.Context(), name); err != nil {
				t.Errorf("delete: %v", err)
			}
			absent(t, s, name)
		}
	}
}

func absent(t *testing.T, s objects.Store, name string) {
	t.Helper()
	if _, err := s.Stat(t.Context(), name); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("stat of nothing: %v", err)
	}
	if _, err := s.Get(t.Context(), name, 0, -1); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("get of nothing: %v", err)
	}
	if found, more, err := s.List(t.Context(), name, "", 10); len(found) > 0 || more || err != nil {
		t.Errorf("list of nothing: %v, %v, %v", found, more, err)
	}
}

// testRanges reads each range of an object, also those that it has not.
func testRanges(t *testing.T, s objects.Store, _ Options) {
	const content = "0123456789"
	put(t, s, "o", content)
	put(t, s, "empty", "")
	for offset := range int64(12) {
		for _, length := range []int64{-1, 0, 1, 3, 10, 11, 1 << 40, math.MaxInt64} {
			want := content[min(offset, 10):]
			if length >= 0 {
				want = want[:min(length, int64(len(want)))]
			}
			if got := get(t, s, "o", offset, length); got != want {
				t.Errorf("offset %d, length %d: got %q, want %q", offset, length, got, want)
			}
			if got := get(t, s, "empty", offset, length); got != "" {
				t.Errorf("offset %d, length %d of nothing: got %q", offset, length, got)
			}
		}
	}
	if _, err := s.Get(t.Context(), "o", -1, 1); !errors.Is(err, objects.ErrName) {
		t.Errorf("a range before the begin: %v", err)
	}
	if _, err := s.Get(t.Context(), "absent", 1, 0); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("an empty range of nothing: %v", err)
	}
}

// testLists compares lists with a sorted slice: each prefix, each place to go on, each limit.
func testLists(t *testing.T, s objects.Store, _ Options) {
	names := []string{"a", "b-c", "b-c.d", "b.x", "b/a", "b/b-1", "b/b.1", "b/b/1", "b/b/2", "b/b0", "b0", "c/d/e/f",
		"log/1-2-ab.ql", "log/1-2-abc.ql"}
	for i, name := range names {
		put(t, s, name, strings.Repeat("x", i))
	}
	slices.Sort(names)
	for _, prefix := range []string{"", "b", "b/", "b/b", "b/b/", "b-", "c/d/", "d", "log/1-2-ab"} {
		for _, after := range []string{"", "a", "b", "b-c", "b/", "b/b", "b/b.1", "b/b/1", "b0", "c", "z"} {
			for _, limit := range []int{1, 2, 5, objects.MaxList} {
				checkList(t, s, names, prefix, after, limit)
			}
		}
	}
	for _, limit := range []int{0, -1, objects.MaxList + 1} {
		if _, _, err := s.List(t.Context(), "", "", limit); !errors.Is(err, objects.ErrName) {
			t.Errorf("a list of %d: %v", limit, err)
		}
	}
}

func checkList(t *testing.T, s objects.Store, names []string, prefix, after string, limit int) {
	t.Helper()
	var want []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && name > after {
			want = append(want, name)
		}
	}
	wantMore := len(want) > limit
	want = want[:min(limit, len(want))]
	found, more, err := s.List(t.Context(), prefix, after, limit)
	var got []string
	for _, info := range found {
		got = append(got, info.Name)
		if at := slices.Index(names, info.Name); info.Size != int64(at) {
			t.Errorf("%s has %d bytes in the list", info.Name, info.Size)
		}
	}
	if err != nil || !slices.Equal(got, want) || more != wantMore {
		t.Errorf("%q after %q, %d: got %q, %v, %v, want %q, %v", prefix, after, limit, got, more, err, want, wantMore)
	}
}

// testNames wants names refused that a file system, a URL or a shell would take for something else.
func testNames(t *testing.T, s objects.Store, _ Options) {
	for _, name := range []string{"", "/", "a/", "/a", "a//b", ".", "..", "../a", "a/../b", "a/.tmp", ".tmp/a", "A", "a b",
		"a%2fb", "a\x00", "ä", "a\\b", "a?b", "a+b", strings.Repeat("a", objects.MaxElement+1), strings.Repeat("a/",
			objects.MaxName/2) + "aa"} {
		_, statErr := s.Stat(t.Context(), name)
		_, getErr := s.Get(t.Context(), name, 0, -1)
		putErr := s.Put(t.Context(), name, strings.NewReader("x"), 1)
		for what, err := range map[string]error{"put": putErr, "stat": statErr, "get": getErr,
			"delete": s.Delete(t.Context(), name)} {
			if !errors.Is(err, objects.ErrName) {
				t.Errorf("%s of %q: %v", what, name, err)
			}
		}
	}
	long := strings.Repeat("a", objects.MaxElement) + "/" + strings.Repeat("b", objects.MaxElement) + "/c"
	put(t, s, long, "x")
	if got := get(t, s, long, 0, -1); got != "x" {
		t.Errorf("a long name has %q", got)
	}
	if err := s.Put(t.Context(), "n", strings.NewReader(""), -1); err == nil {
		t.Error("a size below 0 was taken")
	}
}

// testTaken wants an object unchanged by a second Put.
func testTaken(t *testing.T, s objects.Store, _ Options) {
	put(t, s, "o/1", "first")
	for _, content := range []string{"first", "other", ""} {
		err := s.Put(t.Context(), "o/1", strings.NewReader(content), int64(len(content)))
		if !errors.Is(err, objects.ErrExists) {
			t.Errorf("put %q again: %v", content, err)
		}
		if got := get(t, s, "o/1", 0, -1); got != "first" {
			t.Fatalf("the object has %q", got)
		}
	}
}

// testOnce wants PutOnce to tell the same bytes from others.
func testOnce(t *testing.T, s objects.Store, _ Options) {
	for content, want := range map[string]bool{"first": true, "other": false, "longer": false, "": false} {
		name := "o-" + content
		put(t, s, name, "first")
		for range 2 {
			err := objects.PutOnce(t.Context(), s, name, strings.NewReader(content), int64(len(content)))
			if (err == nil) != want || err != nil && !errors.Is(err, objects.ErrExists) {
				t.Errorf("%q: %v", content, err)
			}
		}
	}
	for range 2 {
		if err := objects.PutOnce(t.Context(), s, "new", strings.NewReader("x"), 1); err != nil {
			t.Error(err)
		}
	}
}

// testBody gives bodies that stand elsewhere, that are too long and too short.
func testBody(t *testing.T, s objects.Store, _ Options) {
	body := strings.NewReader("0123456789")
	if _, err := body.Seek(7, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "a", body, 4); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "a", 0, -1); got != "0123" {
		t.Errorf("got %q", got)
	}
	if err := s.Put(t.Context(), "b", strings.NewReader("0123"), 5); err == nil {
		t.Error("a body that is too short was taken")
	}
	absent(t, s, "b")
	if err := s.Put(t.Context(), "b", failing{strings.NewReader("0123")}, 4); !errors.Is(err, errFailing) {
		t.Errorf("a body that cannot be read: %v", err)
	}
	absent(t, s, "b")
}

var errFailing = errors.New("the body fails")

// failing is a body that cannot be read to its end.
type failing struct{ io.ReadSeeker }

// Read implements io.Reader.
func (failing) Read([]byte) (int, error) { return 0, errFailing }

// testWriters lets many writers want one name.
func testWriters(t *testing.T, s objects.Store, o Options) {
	const writers = 8
	var group sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		group.Go(func() {
			content := strings.Repeat(fmt.Sprint(i), 1000)
			errs[i] = s.Put(t.Context(), "shared", strings.NewReader(content), int64(len(content)))
		})
	}
	group.Wait()
	got, winners := get(t, s, "shared", 0, -1), 0
	for i, err := range errs {
		whole := got == strings.Repeat(fmt.Sprint(i), 1000)
		switch {
		case err == nil:
			winners++
			if !whole && !o.Overwrites {
				t.Errorf("writer %d was told that its object is there", i)
			}
		case !errors.Is(err, objects.ErrExists) && !objects.Passing(err):
			t.Errorf("writer %d: %v", i, err)
		}
	}
	if winners == 0 || winners > 1 && !o.Overwrites || len(got) != 1000 || strings.Trim(got, got[:1]) != "" {
		t.Errorf("%d writers won, and the object has %d bytes", winners, len(got))
	}
}

// testContext wants operations to end with their context.
func testContext(t *testing.T, s objects.Store, _ Options) {
	put(t, s, "o", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, statErr := s.Stat(ctx, "o")
	_, getErr := s.Get(ctx, "o", 0, -1)
	_, _, listErr := s.List(ctx, "", "", 1)
	putErr := s.Put(ctx, "n", strings.NewReader("x"), 1)
	for what, err := range map[string]error{"put": putErr, "stat": statErr, "get": getErr, "list": listErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	absent(t, s, "n")
}

// testLarge writes and reads an object of several parts.
func testLarge(t *testing.T, s objects.Store, o Options) {
	if o.Large == 0 {
		t.Skip("the place takes all objects as a whole")
	}
	content := make([]byte, o.Large)
	chance := rand.NewChaCha8([32]byte{1})
	_, _ = chance.Read(content)
	if err := s.Put(t.Context(), "large", bytes.NewReader(content), o.Large); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "large", 0, -1); sha256.Sum256([]byte(got)) != sha256.Sum256(content) {
		t.Errorf("%d bytes came back, others than were written", len(got))
	}
	at := o.Large/2 - 3
	if got := get(t, s, "large", at, 7); got != string(content[at:at+7]) {
		t.Error("a range across parts has other bytes")
	}
	if err := s.Put(t.Context(), "large", bytes.NewReader(content), o.Large); !errors.Is(err, objects.ErrExists) {
		t.Errorf("put again: %v", err)
	}
}
