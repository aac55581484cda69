package place_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

// Ensure that operations on a place hold no more memory together than they are given, whether the place answers or not, and that
// lists are asked for in pages that fit.
func TestOpen_memory(t *testing.T) {
	asked, goes := make(chan int, 99), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var keys int
		_, _ = fmt.Sscan(r.URL.Query().Get("max-keys"), &keys)
		asked <- keys
		<-goes
		_, _ = w.Write([]byte("<ListBucketResult></ListBucketResult>"))
	}))
	defer server.Close()
	for _, row := range []struct {
		memory, atOnce, held int64
		keys                 int
	}{
		{0, 1, 16 << 20, 1000}, {1 << 20, 1, place.LeastMemory, 96}, {3 << 20, 1, place.LeastMemory, 96},
		{8 << 20, 1, 4 << 20, 256}, {128 << 20, 4, 64 << 20, 1000},
	} {
		s := openServer(t, server.URL, row.memory)
		ended := make(chan error)
		for range row.atOnce + 3 {
			go func() {
				_, _, err := s.List(context.WithoutCancel(t.Context()), "log/", "", objects.MaxList)
				ended <- err
			}()
		}
		for range row.atOnce {
			if keys := <-asked; keys != row.keys {
				t.Errorf("%+v: a page of %d", row, keys)
			}
		}
		if held := s.Held(); held != row.held {
			t.Errorf("%+v: %d bytes are held", row, held)
		}
		select {
		case <-asked:
			t.Errorf("%+v: more at once", row)
		default:
		}
		for range row.atOnce + 3 {
			goes <- struct{}{}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		for len(asked) > 0 {
			<-asked
		}
		if held := s.Held(); held != 0 {
			t.Errorf("%+v: %d bytes are held at the end", row, held)
		}
		s.Close()
	}
}

// openServer opens a bucket of a server, with so much memory for operations.
func openServer(t *testing.T, server string, memory int64) *place.Store {
	t.Helper()
	credentials := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(credentials, []byte("[default]\naws_access_key_id = k\naws_secret_access_key = s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := place.Parse("s3://backups?endpoint=" + url.QueryEscape(server) + "&credentials=" + url.QueryEscape(credentials))
	if err != nil {
		t.Fatal(err)
	}
	s, err := place.Open(at, place.Options{FS: files.Disk, Getenv: func(string) string { return "" }, Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Ensure that a place does as many operations at once as it says, two at least, within the memory that these have.
func TestAtOnce(t *testing.T) {
	asked, goes := make(chan struct{}, 99), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-goes
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	for _, row := range []struct {
		memory int64
		atOnce int
	}{{0, 2}, {1 << 20, 2}, {3 << 20, 2}, {8 << 20, 3}, {18 << 20, 7}, {128 << 20, 16}} {
		if got := place.AtOnce(row.memory); got != row.atOnce {
			t.Errorf("%d bytes: %d operations at once, want %d", row.memory, got, row.atOnce)
		}
		s := openServer(t, server.URL, row.memory)
		ended := make(chan error)
		for range row.atOnce + 3 {
			go func() { ended <- s.Delete(context.WithoutCancel(t.Context()), "o") }()
		}
		for range row.atOnce {
			<-asked
		}
		if held := s.Held(); held > max(row.memory, 2*place.LeastMemory) {
			t.Errorf("%d bytes: %d are held", row.memory, held)
		}
		select {
		case <-asked:
			t.Errorf("%d bytes: more than %d at once", row.memory, row.atOnce)
		default:
		}
		for range row.atOnce + 3 {
			goes <- struct{}{}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		for len(asked) > 0 {
			<-asked
		}
		s.Close()
	}
}
