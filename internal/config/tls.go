package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// TLS has the TLS settings of one kind of connections: those of clients, or those of peers.
type TLS struct {
	CertFile, KeyFile string
	// ClientCertFile and ClientKeyFile are shown where this member is the client; empty: CertFile and KeyFile.
	ClientCertFile, ClientKeyFile string
	// TrustedCAFile has the certificate authorities of the other side. With it, or with ClientCertAuth, every process that
	// connects must show a certificate.
	TrustedCAFile  string
	ClientCertAuth bool
	// CRLFile has lists of certificates that are refused although an authority has signed them.
	CRLFile string
	// Auto asks for self-signed certificates: they encrypt, but prove no identity.
	Auto bool
	// SkipClientSANVerification accepts a peer's certificate from any address, also one that the certificate does not name.
	SkipClientSANVerification bool
	// A certificate is accepted only if it has one of the common names, or is valid for one of the hosts. Empty: every
	// certificate that the authorities have signed.
	AllowedCNs, AllowedHostnames []string
}

// Certified tells whether there is a certificate from a file.
func (t *TLS) Certified() bool { return t.CertFile != "" || t.KeyFile != "" }

// SelfSigned tells whether a self-signed certificate must be made.
func (t *TLS) SelfSigned() bool { return t.Auto && !t.Certified() }

// Authenticates tells whether every process that connects must show a certificate.
func (t *TLS) Authenticates() bool { return t.ClientCertAuth || t.TrustedCAFile != "" }

// TLSVersion is a version of the TLS protocol as crypto/tls counts them; 0 leaves the choice to it.
type TLSVersion uint16

func (v TLSVersion) String() string {
	switch v {
	case tls.VersionTLS12:
		return "TLS1.2"
	case tls.VersionTLS13:
		return "TLS1.3"
	}
	return ""
}

func tlsVersions(at func(*Config) *TLSVersion) value {
	parse := func(s string) (TLSVersion, error) {
		switch s {
		case "":
			return 0, nil
		case "TLS1.2":
			return tls.VersionTLS12, nil
		case "TLS1.3":
			return tls.VersionTLS13, nil
		}
		return 0, fmt.Errorf("invalid value %q, choose one of TLS1.2, TLS1.3", s)
	}
	return field[TLSVersion]{at, parse, TLSVersion.String, nil}
}

var errUnknownSuite = errors.New("unknown cipher suite")

// olderSuites are names from before they ended in the hash, which etcd still reads.
var olderSuites = map[string]string{
	"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305":   "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
	"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
}

// CipherIDs returns the suites that --cipher-suites names; none leaves the choice to crypto/tls.
func (c *Config) CipherIDs() ([]uint16, error) {
	known := append(tls.CipherSuites(), tls.InsecureCipherSuites()...)
	var ids []uint16
	for _, name := range c.TLS.CipherSuites {
		if newer, ok := olderSuites[name]; ok {
			name = newer
		}
		at := slices.IndexFunc(known, func(k *tls.CipherSuite) bool { return k.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("%w %q", errUnknownSuite, name)
		}
		ids = append(ids, known[at].ID)
	}
	return ids, nil
}

// tlsSide is one of the two TLS configurations with the names of its flags and the URLs it serves.
type tlsSide struct {
	*TLS
	prefix string // of most of its flags
	who    string // prefix of the flags about who is admitted
	lists  []urlList
}

func (c *Config) tlsSides() []tlsSide {
	lists := c.listenLists()
	return []tlsSide{{&c.TLS.Client, "", "client-", lists[1:]}, {&c.TLS.Peer, "peer-", "peer-", lists[:1]}}
}

func (c *Config) tlsFaults() Faults {
	var faults Faults
	for _, side := range c.tlsSides() {
		faults = append(faults, side.faults()...)
	}
	if _, err := c.CipherIDs(); err != nil {
		faults = append(faults, fmt.Sprintf("--cipher-suites: %v", err))
	}
	if len(c.TLS.CipherSuites) > 0 && c.TLS.MinVersion == tls.VersionTLS13 {
		faults = append(faults, "--cipher-suites cannot be chosen with --tls-min-version TLS1.3, which has its own")
	}
	if c.TLS.MaxVersion != 0 && c.TLS.MaxVersion < c.TLS.MinVersion {
		faults = append(faults, fmt.Sprintf("--tls-max-version (%v) must not be below --tls-min-version (%v)",
			c.TLS.MaxVersion, c.TLS.MinVersion))
	}
	return faults
}

func (s tlsSide) faults() Faults {
	var faults Faults
	for _, pair := range []struct{ cert, key, name string }{
		{s.CertFile, s.KeyFile, ""}, {s.ClientCertFile, s.ClientKeyFile, "client-"},
	} {
		switch {
		case pair.cert != "" && pair.key == "":
			faults = append(faults, fmt.Sprintf("--%[1]s%[2]scert-file needs --%[1]s%[2]skey-file", s.prefix, pair.name))
		case pair.cert == "" && pair.key != "":
			faults = append(faults, fmt.Sprintf("--%[1]s%[2]skey-file needs --%[1]s%[2]scert-file", s.prefix, pair.name))
		}
	}
	encrypts := false
	for _, l := range s.lists {
		for _, u := range l.urls {
			encrypts = encrypts || u.Secure()
			if u.Secure() && !s.Certified() && !s.Auto {
				faults = append(faults, s.bareFault(l.flag, u))
			}
		}
	}
	if len(s.AllowedCNs) > 0 && len(s.AllowedHostnames) > 0 {
		faults = append(faults, fmt.Sprintf("--%[1]scert-allowed-cn and --%[1]scert-allowed-hostname cannot both be given",
			s.who))
	}
	if by := s.allowedBy(); by != "" && !s.Authenticates() {
		faults = append(faults,
			fmt.Sprintf("--%[2]s needs --%[1]sclient-cert-auth and --%[1]strusted-ca-file: nobody is "+
				"asked for a certificate without", s.prefix, by))
	}
	switch {
	case s.SelfSigned() && s.Authenticates():
		faults = append(faults, fmt.Sprintf("--%[1]sauto-tls makes certificates that no authority has signed: it "+
			"cannot be combined with --%[1]sclient-cert-auth or --%[1]strusted-ca-file", s.prefix))
	case encrypts && s.ClientCertAuth && s.TrustedCAFile == "":
		faults = append(faults, fmt.Sprintf("--%[1]sclient-cert-auth needs --%[1]strusted-ca-file", s.prefix))
	}
	return faults
}

// allowedBy names a flag that admits, or refuses, some of the certificates that the authorities have signed; empty: none does.
func (s tlsSide) allowedBy() string {
	switch {
	case len(s.AllowedCNs) > 0:
		return s.who + "cert-allowed-cn"
	case len(s.AllowedHostnames) > 0:
		return s.who + "cert-allowed-hostname"
	case s.CRLFile != "":
		return s.who + "crl-file"
	}
	return ""
}

// bareFault reports a URL without a certificate. For metrics the words are etcd's, which its suites look for.
func (s tlsSide) bareFault(flag string, u URL) string {
	if flag == "--listen-metrics-urls" {
		return fmt.Sprintf("%s %v: client TLS key/cert (--cert-file, --key-file) must be provided for metrics secure url",
			flag, u)
	}
	return fmt.Sprintf("%[2]s %[3]v needs --%[1]scert-file and --%[1]skey-file, or --%[1]sauto-tls", s.prefix, flag, u)
}

// warnTLS tells of TLS settings that do less than they seem to.
func (c *Config) warnTLS() {
	for _, side := range c.tlsSides() {
		if side.Auto && side.Certified() {
			c.warn("--%[1]sauto-tls is ignored because --%[1]scert-file is given", side.prefix)
		}
		if !side.Certified() && !side.ClientCertAuth {
			continue
		}
		// Metrics and probes are often served without TLS on purpose, so only the first list, which carries the data,
		// is checked.
		for _, u := range side.lists[0].urls {
			if !u.Secure() {
				c.warn("%s %s is not encrypted and asks nobody for a certificate: the TLS flags only affect %s",
					side.lists[0].flag, u, strings.Replace(u.String(), "://", "s://", 1))
			}
		}
	}
}
