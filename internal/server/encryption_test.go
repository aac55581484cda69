package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/keysource"
)

// sealed is a member whose data directory may be encrypted.
type sealed struct {
	t         *testing.T
	dir       string
	arguments []string
}

func newSealed(t *testing.T) *sealed {
	t.Helper()
	client, peer := testnet.Address(t), testnet.Address(t)
	m := &sealed{t: t, dir: filepath.Join(t.TempDir(), "data")}
	m.arguments = []string{"--name=m", "--listen-client-urls=http://" + client, "--advertise-client-urls=http://" + client,
		"--listen-peer-urls=http://" + peer, "--initial-advertise-peer-urls=http://" + peer,
		"--initial-cluster=m=http://" + peer, "--data-dir=" + m.dir}
	return m
}

// start starts the member with more flags.
func (m *sealed) start(more ...string) (*server.Server, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), 60*time.Second)
	defer cancel()
	return server.Start(ctx, loadConfig(m.t, append(m.arguments, more...)...), server.Options{Logger: slog.New(slog.DiscardHandler)})
}

// with starts the member, calls use with a client, and stops it.
func (m *sealed) with(use func(ctx context.Context, c *clientv3.Client), more ...string) {
	m.t.Helper()
	s, err := m.start(more...)
	if err != nil {
		m.t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.ClientAddresses()[0].String()}})
	if err != nil {
		m.t.Fatal(err)
	}
	use(m.t.Context(), c)
	_ = c.Close()
	if err := s.Stop(context.Background()); err != nil {
		m.t.Fatal(err)
	}
}

// writeKeys writes a file of keys, and returns the flag.
func (m *sealed) writeKeys(name string, letters ...byte) string {
	m.t.Helper()
	path, text := filepath.Join(filepath.Dir(m.dir), name), ""
	for _, letter := range letters {
		key := bytes.Repeat([]byte{letter}, 32)
		key[0] = 0xff
		text += base64.StdEncoding.EncodeToString(key) + "\n"
	}
	_ = os.Remove(path)
	if err := os.WriteFile(path, []byte(text), 0o400); err != nil {
		m.t.Fatal(err)
	}
	return "--encryption-key-file=" + path
}

// seen counts a text in all files below a directory, and in their names.
func seen(t *testing.T, dir, text string) int {
	t.Helper()
	count, err := search(dir, text)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func search(dir, text string) (count int, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil // it went meanwhile
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		count += bytes.Count(content, []byte(text)) + strings.Count(path, text)
		return err
	})
	return count, err
}

// everything reads all files below a directory.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var content []byte
			content, err = os.ReadFile(path)
			all[path] = string(content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func putPlanted(t *testing.T, ctx context.Context, c *clientv3.Client, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		value := strings.Repeat(fmt.Sprintf("PLANTED value %d ", i), 200)
		if _, err := c.Put(ctx, fmt.Sprintf("PLANTED/key/%d", i), value); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that no byte on the disk of an encrypted member shows a key or a value, while it runs and after, over restarts, a
// flush and a rotation; that it serves them; that tools read it with the key; and that a plain member, the control, shows
// them.
func TestServer_encrypted(t *testing.T) {
	for _, encrypted := range []bool{true, false} {
		m := newSealed(t)
		var flags []string
		if encrypted {
			flags = append(flags, m.writeKeys("keys", 'a'))
		}
		for round := range 2 {
			m.with(func(ctx context.Context, c *clientv3.Client) {
				putPlanted(t, ctx, c, round*100, round*100+100)
				if _, err := c.Defragment(ctx, c.Endpoints()[0]); err != nil {
					t.Fatal(err)
				}
				got, err := c.Get(ctx, "PLANTED/key/", clientv3.WithPrefix(), clientv3.WithCountOnly())
				if err != nil || got.Count != int64(round*100+100) {
					t.Fatalf("%d keys, %v", got.Count, err)
				}
				if count := seen(t, m.dir, "PLANTED"); encrypted == (count > 0) {
					t.Errorf("encrypted %v, round %d: planted texts were seen %d times", encrypted, round, count)
				}
				if encrypted && round == 0 {
					rotate(t, ctx, c)
				}
			}, flags...)
		}
		if count := seen(t, m.dir, "PLANTED"); encrypted == (count > 0) {
			t.Errorf("encrypted %v, stopped: planted texts were seen %d times", encrypted, count)
		}
		if encrypted {
			m.readStopped(strings.TrimPrefix(flags[0], "--encryption-key-file="))
		}
	}
}

// rotate rotates the keys, and has the store rewritten.
func rotate(t *testing.T, ctx context.Context, c *clientv3.Client) {
	t.Helper()
	api := quoratepb.NewEncryptionClient(c.ActiveConnection())
	before, err := api.Status(ctx, &quoratepb.EncryptionStatusRequest{})
	if err != nil || len(before.GetKeys()) != 1 || before.GetPlainBytes() != 0 || before.GetKeys()[0].GetBytes() < 10<<10 {
		t.Fatalf("%v, %v", before, err)
	}
	after, err := api.Rotate(ctx, &quoratepb.RotateKeyRequest{})
	if err != nil || len(after.GetKeys()) != 2 || !after.GetKeys()[1].GetActive() || after.GetKeys()[0].GetActive() {
		t.Fatalf("%v, %v", after, err)
	}
	if _, err := c.Defragment(ctx, c.Endpoints()[0]); err != nil {
		t.Fatal(err)
	}
	observed, err := quoratepb.NewDoctorClient(c.ActiveConnection()).Observe(ctx, &quoratepb.ObserveRequest{})
	if keys := observed.GetKeys(); err != nil || keys.GetProvider() != "file" || keys.GetTrouble() != "" || keys.GetWrappedBy() == "" {
		t.Errorf("the doctor is told of %v, %v", keys, err)
	}
	scraped, err := http.Get("http://" + c.Endpoints()[0] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(scraped.Body)
	if err := errors.Join(err, scraped.Body.Close()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`quorate_encryption_bytes{key="` + before.GetKeys()[0].GetId() + `"}`,
		"quorate_encryption_plain_bytes 0", "quorate_encryption_key_created_timestamp_seconds 1."} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("%s is missing in the metrics", want)
		}
	}
	after, err = api.Status(ctx, &quoratepb.EncryptionStatusRequest{})
	if err != nil || after.GetKeys()[1].GetFiles() == 0 || after.GetPlainBytes() != 0 {
		t.Fatalf("after a defragmentation: %v, %v", after, err)
	}
}

// readStopped reads the data as the commands for a stopped member do, and is refused without the key.
func (m *sealed) readStopped(keyFile string) {
	m.t.Helper()
	before := everything(m.t, m.dir)
	stopped, err := server.OpenToRead(m.t.Context(), m.dir, "", keysource.Source{KeyFile: keyFile})
	if err != nil {
		m.t.Fatal(err)
	}
	if survivor, err := stopped.Inspect(); err != nil || survivor.Revision != 201 {
		m.t.Errorf("inspected: %v", err)
	}
	_ = stopped.Close()
	if _, err := server.OpenStopped(m.t.Context(), m.dir, "", keysource.Source{}); err == nil ||
		!strings.Contains(err.Error(), "it is encrypted: give --encryption-key-file") {
		m.t.Errorf("without the key: %v", err)
	}
	m.unchanged(before)
}

func (m *sealed) unchanged(before map[string]string) {
	m.t.Helper()
	after := everything(m.t, m.dir)
	for name, content := range before {
		if after[name] != content {
			m.t.Errorf("%s was changed", name)
		}
	}
	if len(after) != len(before) {
		m.t.Errorf("%d files became %d", len(before), len(after))
	}
}

// Ensure that a start which does not fit to the directory is refused, says what to do, and changes nothing.
func TestServer_encrypted_badStarts(t *testing.T) {
	put := func(ctx context.Context, c *clientv3.Client) { putPlanted(t, ctx, c, 0, 3) }
	plain, locked := newSealed(t), newSealed(t)
	plain.with(put)
	locked.with(put, locked.writeKeys("keys", 'a'))
	key := plain.writeKeys("keys", 'a')
	for _, row := range []struct {
		name string
		m    *sealed
		flag string
		want string
	}{
		{"a key for a plain directory", plain, key, "hold data that are not encrypted"},
		{"how to start over with that key", plain, key, "--initial-cluster or --join among them, and run `quorate member reset "},
		{"no key for an encrypted one", locked, "", "it is encrypted: give --encryption-key-file"},
		{"another key", locked, locked.writeKeys("other", 'b'), "add that key to this one"},
		{"a key file that is not there", locked, "--encryption-key-file=/none", "it is encrypted, and its key is not there"},
		{"another provider", locked, "--encryption-kms=unix:///none", "wrapped otherwise: by \"file\""},
	} {
		before := everything(t, row.m.dir)
		var flags []string
		if row.flag != "" {
			flags = []string{row.flag}
		}
		s, err := row.m.start(flags...)
		if err == nil {
			_ = s.Stop(context.Background())
		}
		if err == nil || !strings.Contains(strings.Replace(err.Error(), "holds data", "hold data", 1), row.want) {
			t.Errorf("%s: %v", row.name, err)
		}
		row.m.unchanged(before)
	}
	ring := filepath.Join(locked.dir, "keyring")
	if err := os.Remove(ring); err != nil {
		t.Fatal(err)
	}
	before := everything(t, locked.dir)
	for flag, want := range map[string]string{
		locked.writeKeys("keys", 'a'): "it is encrypted, and the ring of its keys is not there", "--name=m": "it is encrypted, and the ring of its keys is not there",
	} {
		if _, err := locked.start(flag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without the ring, %s: %v", flag, err)
		}
		locked.unchanged(before)
	}
}

// Ensure that the key which wraps the ring is replaced while the member runs, and that the former one opens nothing after.
func TestServer_encrypted_newWrappingKey(t *testing.T) {
	m := newSealed(t)
	flag := m.writeKeys("keys", 'a')
	m.with(func(ctx context.Context, c *clientv3.Client) {
		putPlanted(t, ctx, c, 0, 5)
		m.writeKeys("keys", 'b', 'a')
		if _, err := quoratepb.NewEncryptionClient(c.ActiveConnection()).Rotate(ctx, &quoratepb.RotateKeyRequest{}); err != nil {
			t.Fatal(err)
		}
	}, flag)
	if _, err := m.start(m.writeKeys("former", 'a')); err == nil || !strings.Contains(err.Error(), "add that key to this one") {
		t.Errorf("the former key: %v", err)
	}
	m.with(func(ctx context.Context, c *clientv3.Client) {
		if got, err := c.Get(ctx, "PLANTED/key/4"); err != nil || len(got.Kvs) != 1 {
			t.Errorf("%v, %v", got, err)
		}
	}, m.writeKeys("keys", 'b'))
}

// Ensure that a backup of an encrypted member is never built in its data directory: it is refused, or built where the flag
// says, and nothing is left there.
func TestServer_encrypted_backup(t *testing.T) {
	m, scratch := newSealed(t), t.TempDir()
	flag := m.writeKeys("keys", 'a')
	saved := filepath.Join(t.TempDir(), "backup.db")
	backup := func(ctx context.Context, c *clientv3.Client) (size int, err error) {
		r, err := c.Snapshot(ctx)
		if err != nil {
			return 0, err
		}
		defer r.Close()
		content, err := io.ReadAll(r)
		return len(content), errors.Join(err, os.WriteFile(saved, content, 0o600))
	}
	m.with(func(ctx context.Context, c *clientv3.Client) {
		putPlanted(t, ctx, c, 0, 50)
		if _, err := backup(ctx, c); err == nil || !strings.Contains(err.Error(), "--encryption-scratch-dir") {
			t.Errorf("without the flag: %v", err)
		}
	}, flag)
	m.with(func(ctx context.Context, c *clientv3.Client) {
		if size, err := backup(ctx, c); err != nil || size < 100<<10 {
			t.Errorf("%d bytes, %v", size, err)
		}
		if count := seen(t, scratch, "PLANTED") + seen(t, m.dir, "PLANTED"); count > 0 {
			t.Errorf("%d planted texts are left", count)
		}
	}, flag, "--encryption-scratch-dir="+scratch)
	m.restoreFrom(saved)
}

// restoreFrom restores a backup into an encrypted directory, at the second attempt, and starts a member on it.
func (m *sealed) restoreFrom(file string) {
	m.t.Helper()
	m.dir = filepath.Join(m.t.TempDir(), "restored")
	m.arguments[len(m.arguments)-1] = "--data-dir=" + m.dir
	flag := m.writeKeys("other", 'b')
	request := server.RestoreRequest{From: "/none", DataDir: m.dir, Member: []string{"--name=m", m.arguments[4], m.arguments[5], flag}}
	if _, err := server.Restore(m.t.Context(), &request); err == nil {
		m.t.Error("restored from nothing")
	}
	request.From = file
	if _, err := server.Restore(m.t.Context(), &request); err != nil {
		m.t.Fatal(err)
	}
	m.with(func(ctx context.Context, c *clientv3.Client) {
		if got, err := c.Get(ctx, "PLANTED/", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || got.Count != 50 {
			m.t.Errorf("%v, %v", got, err)
		}
	}, flag)
	if count := seen(m.t, m.dir, "PLANTED"); count > 0 {
		m.t.Errorf("restored: planted texts were seen %d times", count)
	}
}
