package main

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// imageOf is the image of the stand-in.
func imageOf(t *testing.T) string {
	t.Helper()
	return filepath.Join(sharedRelease(t).dir, "quorate_1.0.0_image.tar")
}

// Ensure that a registry takes the image, and gives back an index of valid images that stand where one of etcd's stands.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/a/quorate:v1.0.0"
	status, out, errs := release(t, "push", imageOf(t), to)
	if status != 0 {
		t.Fatalf("got %d %q", status, errs)
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if digest, err := index.Digest(); err != nil || out != to+"@"+digest.String()+"\n" {
		t.Errorf("printed %q, and the registry has %v (%v)", out, digest, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.String() != host().OS+"/"+host().Arch {
		t.Fatalf("got %+v, %v", manifest, err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	checkFiles(t, image)
}

func checkFiles(t *testing.T, image v1.Image) {
	t.Helper()
	layers, err := image.Layers()
	config, err2 := image.ConfigFile()
	if err != nil || err2 != nil || len(layers) != 1 || config.Config.Entrypoint[0] != "/usr/local/bin/quorate" || config.Config.User != "" {
		t.Errorf("%v, %v, %d layers, %+v", err, err2, len(layers), config.Config)
	}
	found := map[string]*tar.Header{}
	files := mutate.Extract(image)
	defer func() { _ = files.Close() }()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(h.Name, "/")] = h
	}
	for _, link := range []string{"etcd", "etcdctl", "etcdutl"} {
		if h := found["usr/local/bin/"+link]; h == nil || h.Linkname != "quorate" {
			t.Errorf("%s: %+v", link, h)
		}
	}
	for file, mode := range map[string]int64{"usr/local/bin/quorate": 0o755, "tmp": 0o1777, "var/lib/quorate": 0o700, "etc/passwd": 0o644,
		"etc/ssl/certs/ca-certificates.crt": 0o644} {
		if h := found[file]; h == nil || h.Mode != mode {
			t.Errorf("%s: %+v, want mode %o", file, h, mode)
		}
	}
}

// Ensure that certificates of authorities are many, and those that a browser takes.
func TestRoots(t *testing.T) {
	text, err := roots()
	if err != nil || strings.Count(string(text), "BEGIN CERTIFICATE") < 100 || !strings.Contains(string(text), "ISRG Root X1") {
		t.Errorf("%v, %d bytes", err, len(text))
	}
}

// Ensure that a registry that refuses, and a file that is no image, are told in a line, and that the registry has nothing then.
func TestPush_refusals(t *testing.T) {
	puts := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			puts++
		}
		if r.URL.Path == "/v2/" {
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"errors":[{"code":"DENIED","message":"not yours"}]}`))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	image, letter := imageOf(t), filepath.Join(t.TempDir(), "letter")
	write(t, letter, strings.Repeat("no image ", 200))
	damaged := filepath.Join(t.TempDir(), "image.tar")
	content, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	write(t, damaged, string(content[:len(content)/2]))
	for _, row := range []struct{ file, to, want string }{
		{image, host + "/a/quorate:v1", "refused " + host + "/a/quorate:v1: 403 Forbidden"},
		{image, "Not A Name", "is no name of an image"},
		{letter, host + "/a/quorate:v1", "is no image of a release"},
		{damaged, host + "/a/quorate:v1", "is no image of a release"},
		{image, "127.0.0.1:1/a/quorate:v1", "refused"},
	} {
		status, out, errs := release(t, "push", row.file, row.to)
		if status != statusFailed || out != "" || !strings.Contains(errs, row.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: got %d %q %q, want %q", row.to, status, out, errs, row.want)
		}
	}
	if puts > 0 {
		t.Errorf("%d manifests were sent", puts)
	}
}
