package tlsfiles_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/reload"
	"github.com/quorate/quorate/internal/base/tlsfiles"
)

// issue returns a certificate that signs itself and is good until a moment, and its key, both in PEM form.
func issue(t *testing.T, until time.Time) (cert, key []byte) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// Ensure that a client gets what its files hold, and that whatever is wrong with one of them is told with its flag and name.
func TestDialing(t *testing.T) {
	dir := t.TempDir()
	file := func(flag, name string, content []byte) reload.File {
		f := reload.File{Flag: flag, Path: filepath.Join(dir, name)}
		if err := os.WriteFile(f.Path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	soon := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	one, oneKey := issue(t, soon.AddDate(1, 0, 0))
	two, twoKey := issue(t, soon)
	damaged := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("damaged")})
	authority, cert, key := file("--cacert", "ca", append(one, two...)), file("--cert", "cert", two), file("--key", "key", twoKey)
	c, err := tlsfiles.Dialing(authority, cert, key)
	if err != nil || c.MinVersion != tls.VersionTLS12 || c.RootCAs == nil || len(c.Certificates) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	both, err := tlsfiles.ReadAuthorities(authority)
	if err != nil || !both.First.NotAfter.Equal(soon) || !both.Pool.Equal(c.RootCAs) {
		t.Errorf("%+v, %v", both, err)
	}
	if c, err := tlsfiles.Dialing(reload.File{}, reload.File{}, reload.File{}); err != nil || c.RootCAs != nil {
		t.Errorf("without files: %+v, %v", c, err)
	}
	absent := reload.File{Flag: "--cacert", Path: filepath.Join(dir, "absent")}
	for _, row := range []struct {
		authority, cert, key reload.File
		want                 string
	}{
		{absent, cert, key, absent.String() + ": no such file or directory"},
		{file("--cacert", "partly", append(one, damaged...)), cert, key, "--cacert "},
		{file("--cacert", "empty", nil), cert, key, "holds no certificate in PEM form"},
		{authority, key, key, key.String() + ": holds no certificate"},
		{authority, cert, file("--key", "other", oneKey), " with " + cert.String() + ": tls: private key does not match"},
	} {
		if _, err := tlsfiles.Dialing(row.authority, row.cert, row.key); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want %q", err, row.want)
		}
	}
}
