package objects_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Ensure that a bucket whose disk is full says so, harms nothing that it has, and takes objects again once there is room.
func TestFull(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("it mounts a small tmpfs: wants root on Linux")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no tmpfs can be mounted: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("%s", out)
		}
	})
	v := gateway(t, dir)
	s := open(t, v.address, v.bucket(t))
	object := bytes.Repeat([]byte("x"), 3<<20)
	put := func(name string) error {
		return objects.PutOnce(t.Context(), s, name, bytes.NewReader(object), int64(len(object)))
	}
	stored, err := 0, error(nil)
	for ; stored < 10 && err == nil; stored++ {
		err = put(fmt.Sprint("o-", stored))
	}
	stored--
	t.Logf("after %d objects: %v", stored, err)
	if !errors.Is(err, objects.ErrFull) && !errors.Is(err, objects.ErrBusy) || stored < 1 {
		t.Fatalf("after %d objects: %v", stored, err)
	}
	large := bytes.Repeat([]byte("x"), 12<<20)
	if err := s.Put(t.Context(), "large", bytes.NewReader(large), int64(len(large))); err == nil {
		t.Error("an object of 12 MiB was taken without room")
	}
	for i := range stored {
		if same, err := objects.Compare(t.Context(), s, fmt.Sprint("o-", i), bytes.NewReader(object),
			int64(len(object))); !same || err != nil {
			t.Errorf("object %d: %v, %v", i, same, err)
		}
	}
	if _, err := s.Stat(t.Context(), fmt.Sprint("o-", stored)); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("the object for which there was no room: %v", err)
	}
	if err := s.Delete(t.Context(), "o-0"); err != nil {
		t.Error(err)
	}
	if err := put("again"); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// certificate makes a certificate for a name, signed by itself, and returns its files.
func certificate(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	if name == "127.0.0.1" {
		template.DNSNames, template.IPAddresses = nil, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(
		os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600)); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// Ensure that `quorate backup check` tells each mistake of an operator by a sentence of its own, by what a real server answers.
func TestCheckCommand(t *testing.T) {
	cert, key := certificate(t, "127.0.0.1")
	plain, secure := gateway(t, t.TempDir()), gateway(t, t.TempDir(), "--cert", cert, "--key", key)
	bucket, secureBucket := plain.bucket(t), secure.bucket(t)
	other, _ := certificate(t, "another.example")
	proxy := newProxy(t, plain.address)
	proxy.inject(-1, always, refuse(403, "RequestTimeTooSkewed"))
	url := func(bucket, endpoint, more string) string {
		return "s3://" + bucket + "/c/1?endpoint=" + endpoint + more
	}
	good := []string{"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey}
	for _, c := range []struct {
		name, url string
		env       []string
		status    int
		want      string
	}{
		{"fine", url(bucket, "http://"+plain.address, ""), good, 0, "can hold backups"},
		{"fine with TLS", url(secureBucket, "https://"+secure.address, "&ca="+cert), good, 0, "can hold backups"},
		{"no credentials", url(bucket, "http://"+plain.address, ""), nil, 1, "set AWS_ACCESS_KEY_ID"},
		{"unknown key", url(bucket, "http://"+plain.address, ""), []string{"AWS_ACCESS_KEY_ID=other", good[1]}, 1,
			"mistyped, revoked"},
		{"wrong secret", url(bucket, "http://"+plain.address, ""), []string{good[0], "AWS_SECRET_ACCESS_KEY=other"}, 1,
			"mistyped, revoked"},
		{"wrong region", url(bucket, "http://"+plain.address, "&region=eu-x-1"), good, 1, "it is in region " + region},
		{"no such bucket", url("absent", "http://"+plain.address, ""), good, 1, "Make the directory or bucket"},
		{"clock", url(bucket, proxy.URL, ""), good, 1, "Set the clock"},
		{"unknown authority", url(secureBucket, "https://"+secure.address, ""), good, 1, "ca=FILE"},
		{"another name", url(secureBucket, "https://"+strings.Replace(secure.address, "127.0.0.1", "localhost", 1),
			"&ca="+cert), good, 1, "wanted to match localhost"},
		{"another authority", url(secureBucket, "https://"+secure.address, "&ca="+other), good, 1, "ca=FILE"},
		{"no TLS there", url(bucket, "https://"+plain.address, ""), good, 1, "HTTP response to HTTPS client"},
		{"TLS there", url(secureBucket, "http://"+secure.address, ""), good, 3, ""},
		{"nothing there", url(bucket, "http://"+testnet.Address(t), ""), good, 3, "refused"},
		{"no such name", url(bucket, "http://nowhere.invalid:1", ""), good, 3, "its name in DNS"},
	} {
		var out, said bytes.Buffer
		status := ctl.Run(context.Background(), []string{"backup", "check", c.url, "--timeout=20s"},
			command.Streams{Out: &out, Err: &said, Environ: c.env, Self: "quorate"})
		if status != c.status || !strings.Contains(out.String()+said.String(), c.want) {
			t.Errorf("%s: status %d, want %d and words of %q: %s%s", c.name, status, c.status, c.want, &out, &said)
		}
		if strings.Contains(out.String()+said.String(), secretKey) {
			t.Errorf("%s: the secret is printed: %s%s", c.name, &out, &said)
		}
		t.Logf("%-18s %d %s", c.name, status, said.String())
		if c.status != 1 { // a command that restores is patient with a place that cannot be reached
			continue
		}
		said.Reset()
		read := ctl.Run(context.Background(), []string{"backup", "list", "--from", c.url},
			command.Streams{Out: &out, Err: &said, Environ: c.env, Self: "quorate"})
		if read != 1 || !strings.Contains(said.String(), c.want) {
			t.Errorf("%s: backup list: status %d, want words of %q: %s", c.name, read, c.want, &said)
		}
	}
}

// Ensure that a server that is killed in the middle of a large object, and comes back, takes it then, whole.
func TestServerDies(t *testing.T) {
	dir := t.TempDir()
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // four parts
	var first *server
	var bucket string
	var s objects.Store
	t.Run("first life", func(t *testing.T) { // its end kills the server
		first = gateway(t, dir)
		bucket = first.bucket(t)
		p := newProxy(t, first.address)
		s = open(t, p.address(), bucket)
		p.inject(-1, isThirdPart, lostAfter)
		if err := s.Put(t.Context(), "large", bytes.NewReader(large), int64(len(large))); !errors.Is(err,
			objects.ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	})
	second := gateway(t, dir)
	s = open(t, second.address, bucket)
	if _, err := s.Stat(t.Context(), "large"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("after the restart: %v", err)
	}
	if err := objects.PutOnce(t.Context(), s, "large", bytes.NewReader(large), int64(len(large))); err != nil {
		t.Error(err)
	}
	if same, err := objects.Compare(t.Context(), s, "large", bytes.NewReader(large), int64(len(large))); !same || err != nil {
		t.Errorf("got %v, %v", same, err)
	}
}
