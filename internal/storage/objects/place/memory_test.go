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
	credentials := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(credentials, []byte("[default]\naws_access_key_id = k\naws_secret_access_key = s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := place.Parse("s3://backups?endpoint=" + url.QueryEscape(server.URL) + "&credentials=" + url.QueryEscape(credentials))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		memory, atOnce, held int64
		keys                 int
	}{
		{0, 1, 16 << 20, 1000}, {1 << 20, 1, place.LeastMemory, 96}, {3 << 20, 2, 3 << 20, 96}, {8 << 20, 2, 8 << 20, 256}, {128 << 20, 8, 128 << 20, 1000},
	} {
		s, err := place.Open(at, place.Options{FS: files.Disk, Getenv: func(string) string { return "" }, Memory: row.memory})
		if err != nil {
			t.Fatal(err)
		}
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
