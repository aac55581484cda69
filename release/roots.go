package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// roots are the certificates of authorities for the image, as files of that kind are: PEM, each below its name. They come
// from the bundle of the Go project, which follows Mozilla's, at the version that go.mod pins: the file of the build
// machine would make an image depend on the machine, and one that is checked in would be brought up to date by nobody. An
// authority that is trusted only for certificates of before a day is left out: PEM cannot say so.
func roots() ([]byte, error) {
	type root struct{ name, text string }
	var all []root
	for r := range bundle.Roots() {
		if r.Constraint != nil {
			continue
		}
		certificate, err := x509.ParseCertificate(r.Certificate)
		if err != nil {
			return nil, fmt.Errorf("a certificate of the bundle: %w", err)
		}
		name := certificate.Subject.String()
		all = append(all, root{name, fmt.Sprintf("# %s\n%s", name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: r.Certificate}))})
	}
	slices.SortStableFunc(all, func(a, b root) int { return strings.Compare(a.name, b.name) })
	var out bytes.Buffer
	for _, r := range all {
		out.WriteString(r.text)
	}
	return out.Bytes(), nil
}
