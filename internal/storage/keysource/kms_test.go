package keysource

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/kms/apis/v2"

	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// plugin is a key service that keeps what it wraps, and gives out numbers.
type plugin struct {
	v2.UnimplementedKeyManagementServiceServer
	address string

	mu     sync.Mutex
	held   map[string][]byte
	key    string
	health string
	encode func(*v2.EncryptResponse)     // spoils an answer
	fail   error                         // of every call
	hang   bool                          // no call ends
	spoil  func(plaintext []byte) []byte // of Decrypt
}

func startPlugin(t *testing.T) *plugin {
	t.Helper()
	p := &plugin{address: filepath.Join(t.TempDir(), "kms.sock"), held: map[string][]byte{}, key: "key-1", health: "ok"}
	p.serve(t)
	p.address = "unix://" + p.address
	return p
}

func (p *plugin) serve(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", strings.TrimPrefix(p.address, "unix://"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	v2.RegisterKeyManagementServiceServer(server, p)
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(server.Stop)
}

func (p *plugin) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *plugin) begin(ctx context.Context) error {
	p.mu.Lock()
	hang, fail := p.hang, p.fail
	p.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return fail
}

func (p *plugin) Encrypt(ctx context.Context, r *v2.EncryptRequest) (*v2.EncryptResponse, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name := string(rune('a' + len(p.held)))
	p.held[name+p.key] = bytes.Clone(r.GetPlaintext())
	answer := &v2.EncryptResponse{Ciphertext: []byte(name), KeyId: p.key, Annotations: map[string][]byte{"a.example": []byte(name)}}
	if p.encode != nil {
		p.encode(answer)
	}
	return answer, nil
}

func (p *plugin) Decrypt(ctx context.Context, r *v2.DecryptRequest) (*v2.DecryptResponse, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	plain, known := p.held[string(r.GetCiphertext())+r.GetKeyId()]
	if !known || string(r.GetAnnotations()["a.example"]) != string(r.GetCiphertext()) {
		return nil, status.Error(codes.NotFound, "no such key")
	}
	if p.spoil != nil {
		plain = p.spoil(plain)
	}
	return &v2.DecryptResponse{Plaintext: plain}, nil
}

func (p *plugin) Status(ctx context.Context, _ *v2.StatusRequest) (*v2.StatusResponse, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return &v2.StatusResponse{Version: "v2", Healthz: p.health, KeyId: p.key}, nil
}

// client is a client of the plug-in; it is impatient where the plug-in never answers.
func (p *plugin) client(t *testing.T) atrest.Providers {
	t.Helper()
	k, err := NewKMS(p.address)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hang || p.fail != nil || strings.HasPrefix(p.address, "unix:///none") {
		k.call, k.patience = 500*time.Millisecond, time.Second
	}
	return atrest.Providers{k}
}

func dataDir(t *testing.T) *filestest.MemFS {
	t.Helper()
	fs := filestest.NewMem()
	if err := durable.MakeDir(fs, "/data"); err != nil {
		t.Fatal(err)
	}
	return fs
}

// Ensure that a plug-in wraps a ring and opens it, over a rotation of its own key, and that the ring keeps what the plug-in must
// be given back.
func TestKMS(t *testing.T) {
	ctx, fs, p := t.Context(), dataDir(t), startPlugin(t)
	ring, err := atrest.CreateRing(ctx, fs, "/data", p.client(t), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	first := ring.Active().ID
	if ring, err = atrest.OpenRing(ctx, fs, "/data", p.client(t)); err != nil || ring.Active().ID != first {
		t.Fatal(err)
	}
	p.set(func() { p.key = "key-2" })
	if _, err = ring.Rotate(ctx, p.client(t), time.Now()); err != nil {
		t.Fatal(err)
	}
	p.set(func() { clear(p.held) }) // all keys are gone: whatever a ring was wrapped with before is of no use
	if _, err = atrest.OpenRing(ctx, fs, "/data", p.client(t)); err == nil || !strings.Contains(err.Error(), `key "key-2"`) ||
		!strings.Contains(err.Error(), "no such key") {
		t.Errorf("a plug-in that forgot: %v", err)
	}
}

// Ensure that a plug-in that hangs, is not there, fails or answers nonsense ends in an error in time, and changes nothing.
func TestKMS_bad(t *testing.T) {
	for name, row := range map[string]struct {
		spoil func(p *plugin)
		want  string
	}{
		"hangs":                {func(p *plugin) { p.hang = true }, "did not answer within"},
		"is not there":         {func(p *plugin) { p.address = "unix:///none/kms.sock" }, "did not answer within"},
		"refuses":              {func(p *plugin) { p.fail = status.Error(codes.PermissionDenied, "not you") }, "refused: not you"},
		"is always away":       {func(p *plugin) { p.fail = status.Error(codes.Unavailable, "later") }, "did not answer within"},
		"wraps into nothing":   {func(p *plugin) { p.encode = func(r *v2.EncryptResponse) { r.Ciphertext = nil } }, "forbids"},
		"wraps into too much":  {func(p *plugin) { p.encode = func(r *v2.EncryptResponse) { r.Ciphertext = make([]byte, 2<<10) } }, "forbids"},
		"names no key":         {func(p *plugin) { p.encode = func(r *v2.EncryptResponse) { r.KeyId = "" } }, "forbids"},
		"annotates too much":   {func(p *plugin) { p.encode = func(r *v2.EncryptResponse) { r.Annotations["b"] = make([]byte, 33<<10) } }, "forbids"},
		"answers without end":  {func(p *plugin) { p.encode = func(r *v2.EncryptResponse) { r.Ciphertext = make([]byte, 1<<20) } }, "refused"},
		"forgets at once":      {func(p *plugin) { p.encode = func(r *v2.EncryptResponse) { r.KeyId = "key-9" } }, "just wrapped"},
		"opens another key":    {func(p *plugin) { p.spoil = func([]byte) []byte { return make([]byte, 32) } }, "returned another key"},
		"opens a piece of one": {func(p *plugin) { p.spoil = func(b []byte) []byte { return b[:31] } }, "31 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			fs, p := dataDir(t), startPlugin(t)
			p.set(func() { row.spoil(p) })
			begun := time.Now()
			_, err := atrest.CreateRing(t.Context(), fs, "/data", p.client(t), time.Now())
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if names, _ := fs.List("/data"); len(names) > 0 {
				t.Errorf("it left %v", names)
			}
		})
	}
}

// Ensure that a plug-in may come later than the process that asks it, and that whoever asks may give up.
func TestKMS_comesLater(t *testing.T) {
	p := &plugin{address: "unix://" + filepath.Join(t.TempDir(), "kms.sock"), held: map[string][]byte{}, key: "key-1"}
	k, err := NewKMS(p.address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Wrap(ctx, make([]byte, 32)); err == nil {
		t.Error("a call that was given up succeeded")
	}
	done := make(chan error, 1)
	go func() {
		_, err := k.Wrap(t.Context(), make([]byte, 32))
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	p.serve(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestNewKMS_address(t *testing.T) {
	for _, address := range []string{"", "kms.sock", "unix://kms.sock", "unix:kms.sock", "tcp://127.0.0.1:1", "http://x"} {
		if _, err := NewKMS(address); err == nil {
			t.Errorf("%q is taken", address)
		}
	}
}

// Ensure that a source without a key is refused by an encrypted directory alone.
func TestSource_Open_without(t *testing.T) {
	fs, p := dataDir(t), startPlugin(t)
	if ring, err := (Source{}).Open(t.Context(), fs, "/data"); ring != nil || err != nil {
		t.Errorf("a plain directory: %v, %v", ring, err)
	}
	source := Source{KMS: p.address}
	if _, err := source.Create(t.Context(), fs, "/data", time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := (Source{}).Open(t.Context(), fs, "/data"); !errors.Is(err, ErrKeyNeeded) {
		t.Error(err)
	}
	if ring, err := source.Open(t.Context(), fs, "/data"); err != nil || ring == nil {
		t.Error(err)
	}
}

// Ensure that a directory goes from a key file to a plug-in by a rotation with both.
func TestSource_Rotate_fromFileToKMS(t *testing.T) {
	fs, p := dataDir(t), startPlugin(t)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, append(bytes.Repeat([]byte{7}, 31), 0xff), 0o400); err != nil {
		t.Fatal(err)
	}
	ring, err := (Source{KeyFile: file}).Create(t.Context(), fs, "/data", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	first, both := ring.Active().ID, Source{KeyFile: file, KMS: p.address}
	if ring, err = both.Open(t.Context(), fs, "/data"); err != nil {
		t.Fatal(err)
	}
	if _, err := both.Rotate(t.Context(), ring, time.Now()); err != nil {
		t.Fatal(err)
	}
	if ring, err = (Source{KMS: p.address}).Open(t.Context(), fs, "/data"); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Find(first); err != nil {
		t.Error(err)
	}
	if _, err := (Source{KeyFile: file}).Open(t.Context(), fs, "/data"); !errors.Is(err, atrest.ErrOtherProvider) {
		t.Errorf("the file still opens it: %v", err)
	}
}

// Ensure that a plug-in is asked for the name of its key, and that what it must not answer is an error without what a terminal
// obeys.
func TestKMS_Current(t *testing.T) {
	p := startPlugin(t)
	k := p.client(t)[0].(*KMS)
	if id, err := k.Current(t.Context()); id != "key-1" || err != nil {
		t.Errorf("got %s, %v", id, err)
	}
	for want, change := range map[string]func(){
		"that it is not well: sealed": func() { p.health = "sealed\x1b[2J" },
		"named a key by 2000 bytes":   func() { p.health, p.key = "ok", strings.Repeat("k", 2000) },
		"did not answer within":       func() { p.hang = true },
	} {
		p.set(func() { p.health, p.key, p.hang = "ok", "key-1", false })
		p.set(change)
		if p.hang {
			k.call, k.patience = 100*time.Millisecond, 200*time.Millisecond
		} else {
			k.call, k.patience = callTimeout, patience
		}
		if id, err := k.Current(t.Context()); id != "" || err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\x1b") {
			t.Errorf("got %s, %v, want %s", id, err, want)
		}
	}
}
