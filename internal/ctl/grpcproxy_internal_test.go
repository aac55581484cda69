package ctl

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/logging"
)

// Ensure that the proxy and the gateway have every flag of those of etcd 3.7.3, with its default. The file has what their help
// shows.
func TestProxies_haveEtcdsFlags(t *testing.T) {
	text, err := os.ReadFile("testdata/etcd-proxy-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	root, flags := newRoot(command.Streams{}, Tools{}), 0
	for line := range strings.Lines(string(text)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		start, _, err := root.Find([]string{words[0], "start"})
		if err != nil {
			t.Fatal(err)
		}
		flags++
		f := start.Flags().Lookup(words[1])
		if f == nil {
			t.Errorf("etcd %s has --%s", words[0], words[1])
			continue
		}
		def, zero := words[2], map[string]string{"bool": "false", "duration": "0s", "stringSlice": "[]", "int": "0"}
		if def == "" {
			def = zero[f.Value.Type()]
		}
		if words[1] == "max-concurrent-streams" { // the constant says why
			def = "10000"
		}
		if f.DefValue != def {
			t.Errorf("%s --%s is %q by default, in etcd %q", words[0], words[1], f.DefValue, def)
		}
	}
	if flags != 46 {
		t.Errorf("the file has %d flags", flags)
	}
}

// Ensure that the proxy gets what the flags say, and that lines which cannot be honoured say why.
func TestGRPCProxy_run(t *testing.T) {
	var got *GRPCProxy
	start := func(line string) (string, int) {
		var told strings.Builder
		tools := Tools{GRPCProxy: func(_ context.Context, g *GRPCProxy, _ *logging.Log) error {
			got = g
			return errors.New("it ran")
		}}
		status := RunWith(t.Context(), append([]string{"grpc-proxy", "start"}, strings.Fields(line)...),
			command.Streams{Err: &told}, tools)
		return told.String(), status
	}
	told, status := start("--endpoints=https://m1:2379,m2:2379 --namespace=ns/ --resolver-prefix=p --resolver-ttl=5 " +
		"--metrics-addr=http://127.0.0.1:9090 --cert=c --key=k --memory=256MiB")
	if !strings.Contains(told, "it ran") || status != command.StatusRefused || got.Namespace != "ns/" ||
		strings.Join(got.Members.Endpoints, " ") != "https://m1:2379 m2:2379" || got.ResolverTTL != 5 || got.Members.KeyFile != "k" ||
		got.Memory.Bytes != 256<<20 {
		t.Errorf("got %q, %d and %+v", told, status, got)
	}
	if address, secure, err := got.MetricsAddress(); address != "127.0.0.1:9090" || secure || err != nil {
		t.Errorf("got %s, %v, %v", address, secure, err)
	}
	for line, want := range map[string]string{
		"--experimental-serializable-ordering":                         "--experimental-serializable-ordering: read linearizably",
		"--experimental-leasing-prefix=l":                              "--experimental-leasing-prefix: the proxy keeps no keys",
		"--resolver-prefix=p":                                          "invalid resolver-ttl 0",
		"--resolver-ttl=5":                                             `invalid resolver-prefix ""`,
		"--resolver-prefix=p --resolver-ttl=5 --advertise-client-url=": `invalid advertise-client-url ""`,
		"--memory=100MiB":                                              "--memory 100MiB: must be at least 128MiB",
		"--max-send-bytes=0":                                           "must be more than 0",
		"--dial-keepalive-time=-1s":                                    "a duration is negative",
		"--auto-tls --self-signed-cert-validity=0":                     "selfSignedCertValidity is invalid",
		"--tls-min-version=TLS1.1":                                     `tls-min-version is invalid: unexpected TLS version "TLS1.1"`,
		"--tls-min-version=TLS1.3 --tls-max-version=TLS1.2":            "min version (TLS1.3) is greater than max version (TLS1.2)",
		"--tls-min-version=TLS1.3 --listen-cipher-suites=x":            "cipher suites cannot be configured when only TLS1.3 is enabled",
		"--cert-file=c":                                                "--cert-file and --key-file need each other",
		"--trusted-ca-file=c":                                          "--trusted-ca-file and --client-crl-file need --cert-file",
		"--cert-file=c --key-file=k --client-crl-file=c":               "--client-crl-file needs --trusted-ca-file",
		"--cert=c":                           "--cert and --key need each other",
		"--endpoints=":                       "--endpoints names no member",
		"--endpoints=m1":                     "--endpoints m1: address m1: missing port",
		"--endpoints=http://127.0.0.1:23790": "the proxy itself listens there",
		"--listen-addr=x":                    "--listen-addr x: address x: missing port",
		"--discovery-srv-name=x":             "--discovery-srv-name needs --discovery-srv",
		"surplus":                            "usage: quorate grpc-proxy start",
	} {
		if told, status := start(line); status != command.StatusUsage || !strings.Contains(told, want) {
			t.Errorf("%s: got %d, %q, want %q", line, status, told, want)
		}
	}
}
