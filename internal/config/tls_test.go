package config_test

import (
	"crypto/tls"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/config"
)

const secureURLs = "--listen-client-urls=https://127.0.0.1:2379 --listen-peer-urls=https://127.0.0.1:2380 "

// Ensure that TLS which cannot work, or would check less than it says, is refused.
func TestConfig_Validate_tls(t *testing.T) {
	files := "--cert-file=c --key-file=k --peer-cert-file=c --peer-key-file=k "
	for _, row := range []struct {
		name, args string
		want       []string // beginnings of all faults, in order
	}{
		{"everything by files", secureURLs + files + "--trusted-ca-file=a --client-cert-auth --peer-trusted-ca-file=a " +
			"--peer-client-cert-auth", nil},
		{"made by itself", secureURLs + "--auto-tls --peer-auto-tls", nil},
		{"nothing to show", secureURLs, []string{
			"--listen-client-urls https://127.0.0.1:2379 needs --cert-file and --key-file, or --auto-tls",
			"--listen-peer-urls https://127.0.0.1:2380 needs --peer-cert-file and --peer-key-file, or --peer-auto-tls"}},
		{"a socket", "--listen-client-urls=unixs://a.sock",
			[]string{"--listen-client-urls unixs://a.sock needs --cert-file"}},
		{"metrics need certificates too", "--listen-metrics-urls=https://127.0.0.1:1",
			[]string{"--listen-metrics-urls https://127.0.0.1:1: client TLS key/cert (--cert-file, --key-file) must be"}},
		{"others' URLs and a proxy's need none", "--advertise-client-urls=https://a:1 " +
			"--initial-cluster=default=http://localhost:2380,m2=https://b:1", nil},
		{"a certificate alone", "--cert-file=c", []string{"--cert-file needs --key-file"}},
		{"a key alone", "--peer-key-file=c", []string{"--peer-key-file needs --peer-cert-file"}},
		{"a certificate to dial with alone", "--peer-client-cert-file=c",
			[]string{"--peer-client-cert-file needs --peer-client-key-file"}},
		{"nobody to verify clients", secureURLs + files + "--client-cert-auth",
			[]string{"--client-cert-auth needs --trusted-ca-file"}},
		{"authorities for certificates that have none", "--peer-auto-tls --peer-trusted-ca-file=a",
			[]string{"--peer-auto-tls makes certificates that no authority has signed"}},
		{"an older name of a suite", "--cipher-suites=TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", nil},
		{"an unknown suite", "--cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA,TLS_B",
			[]string{`--cipher-suites: unknown cipher suite "TLS_B"`}},
		{"suites of another version", "--cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA --tls-min-version=TLS1.3",
			[]string{"--cipher-suites cannot be chosen"}},
		{"versions the wrong way round", "--tls-min-version=TLS1.3 --tls-max-version=TLS1.2",
			[]string{"--tls-max-version (TLS1.2) must not be below --tls-min-version (TLS1.3)"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := load(t, strings.Fields(row.args))
			var faults config.Faults
			if err != nil && !errors.As(err, &faults) {
				t.Fatalf("got %v, want faults", err)
			}
			if len(faults) != len(row.want) {
				t.Fatalf("got %d faults %q, want %d: %q", len(faults), faults, len(row.want), row.want)
			}
			for i, want := range row.want {
				if !strings.HasPrefix(faults[i], want) {
					t.Errorf("fault %d: got %q, want %q…", i, faults[i], want)
				}
			}
		})
	}
}

// Ensure that TLS which has no effect is warned of.
func TestLoad_tlsWarnings(t *testing.T) {
	for _, row := range []struct {
		args string
		want []string
	}{
		{"--cert-file=c --key-file=k", []string{"--listen-client-urls http://localhost:2379 is not encrypted and asks " +
			"nobody for a certificate: the TLS flags only affect https://localhost:2379"}},
		{"--peer-client-cert-auth", []string{"--listen-peer-urls http://localhost:2380 is not encrypted and asks " +
			"nobody for a certificate: the TLS flags only affect https://localhost:2380"}},
		{secureURLs + "--auto-tls --cert-file=c --key-file=k --peer-auto-tls",
			[]string{"--auto-tls is ignored because --cert-file is given"}},
		{secureURLs + "--auto-tls --peer-auto-tls --listen-metrics-urls=http://127.0.0.1:1", nil},
	} {
		if c := mustLoad(t, strings.Fields(row.args)); !slices.Equal(c.Warnings, row.want) {
			t.Errorf("%s: got %q, want %q", row.args, c.Warnings, row.want)
		}
	}
}

// Ensure that both forms of the settings arrive where they belong.
func TestLoad_tls(t *testing.T) {
	c := mustLoad(t, []string{"--config-file=" + writeFile(t, "client-transport-security: {cert-file: c, key-file: k, "+
		"trusted-ca-file: a, client-cert-auth: true}\npeer-transport-security: {cert-file: pc, key-file: pk, "+
		"client-cert-file: dc, client-key-file: dk, skip-client-san-verification: true, trusted-ca-file: pa, "+
		"allowed-cn: [x, z]}\n"+
		"cipher-suites: [TLS_RSA_WITH_AES_128_CBC_SHA, TLS_RSA_WITH_AES_256_CBC_SHA]\ntls-max-version: TLS1.3\n")})
	if got, want := c.TLS.Client, (config.TLS{CertFile: "c", KeyFile: "k", TrustedCAFile: "a",
		ClientCertAuth: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("client: got %+v, want %+v", got, want)
	}
	if got, want := c.TLS.Peer, (config.TLS{CertFile: "pc", KeyFile: "pk", ClientCertFile: "dc", ClientKeyFile: "dk",
		TrustedCAFile:             "pa",
		SkipClientSANVerification: true, AllowedCNs: []string{"x", "z"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("peer: got %+v, want %+v", got, want)
	}
	suites, err := c.CipherIDs()
	if want := []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA}; err != nil ||
		!slices.Equal(suites, want) {
		t.Errorf("suites: got %v %v, want %v", suites, err, want)
	}
	if c.TLS.MinVersion != tls.VersionTLS12 || c.TLS.MaxVersion != tls.VersionTLS13 || c.TLS.SelfSignedValidity != 1 {
		t.Errorf("got versions %v to %v, validity %d", c.TLS.MinVersion, c.TLS.MaxVersion, c.TLS.SelfSignedValidity)
	}
	_, err = load(t, []string{"--tls-min-version=TLS1.1"})
	var usage *config.UsageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "choose one of TLS1.2, TLS1.3") {
		t.Errorf("got %v, want a usage error", err)
	}
}
