package controller_test

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

func (f *fixture) secret(name string) *corev1.Secret {
	f.Helper()
	s := &corev1.Secret{}
	f.must(f.Get(f.Context(), client.ObjectKey{Namespace: "ns", Name: name}, s))
	return s
}

// signedBy tells whether the first authority of a bundle signed a certificate.
func signedBy(t *testing.T, certificate, bundle []byte) bool {
	t.Helper()
	parse := func(text []byte) *x509.Certificate {
		block, _ := pem.Decode(text)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	return parse(certificate).CheckSignatureFrom(parse(bundle)) == nil
}

// Ensure that a new authority signs nothing before it was trusted for a day, then what is renewed, and that clients get certificates
// of authorities without a key.
func TestReconcile_newAuthority(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { c.Spec.TLS.Mode = "BuiltIn" })
	f.found()
	member := prefix() + "1-tls"
	former := f.secret("kv-authority").Data["tls.crt"]
	f.now = f.now.Add(6 * 365 * 24 * time.Hour) // the authority is old, and certificates are due
	f.must(f.step(2))
	trusted := string(f.secret(member).Data["ca.crt"])
	if !signedBy(t, f.secret(member).Data["tls.crt"], former) || strings.Count(trusted, "BEGIN CERTIFICATE") != 2 {
		t.Errorf("a new authority signs before it is trusted, or is not trusted: %s", trusted)
	}
	f.now = f.now.Add(25 * time.Hour)
	f.must(f.step(2))
	if !signedBy(t, f.secret(member).Data["tls.crt"], former) {
		t.Error("a certificate was renewed that is good")
	}
	f.now = f.now.Add(65 * 24 * time.Hour)
	f.must(f.step(2))
	authority := f.secret("kv-authority")
	if !signedBy(t, f.secret(member).Data["tls.crt"], authority.Data["tls.crt"]) || string(authority.Data["tls.crt"]) == string(former) ||
		!strings.Contains(string(f.secret(member).Data["ca.crt"]), string(former)) {
		t.Error("the new authority does not sign what is renewed, or the former one is trusted no more")
	}
	public := f.secret("kv-ca")
	if len(public.Data) != 1 || string(public.Data["ca.crt"]) != string(authority.Data["ca.crt"]) {
		t.Errorf("for clients: %q", public.Data)
	}
}

// Ensure that a cluster whose authority was deleted keeps its certificates, and goes on to trust those who signed them.
func TestReconcile_lostAuthority(t *testing.T) {
	f := start(t, interceptor.Funcs{}, func(c *v1alpha1.QuorateCluster) { c.Spec.TLS.Mode = "BuiltIn" })
	f.found()
	member := prefix() + "1-tls"
	before, authority := f.secret(member), f.secret("kv-authority")
	f.must(f.Delete(t.Context(), authority))
	f.must(f.step(2))
	after := f.secret(member)
	if string(after.Data["tls.crt"]) != string(before.Data["tls.crt"]) ||
		!strings.Contains(string(after.Data["ca.crt"]), string(authority.Data["tls.crt"])) ||
		!strings.Contains(string(after.Data["ca.crt"]), string(f.secret("kv-authority").Data["tls.crt"])) {
		t.Errorf("after the Secret was deleted: %s", after.Data["ca.crt"])
	}
}
