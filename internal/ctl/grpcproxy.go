package ctl

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/logging"
	"github.com/quorate/quorate/internal/server/discovery/srv"
)

// GRPCProxy are the settings of `quorate grpc-proxy start`: the flags of etcd's.
type GRPCProxy struct {
	Members ProxyMembers
	Clients ProxyClients

	AdvertiseURL, ResolverPrefix string
	ResolverTTL                  int // seconds
	Namespace                    string
	Memory                       config.Memory // of this process

	LogCalls, Profiles, Debug bool

	lookup   lookup
	resolver srv.Resolver // nil: that of the system
	memory   string       // what was given for Memory
	ordering bool         // refused
	leasing  string       // refused
}

// ProxyMembers say how to connect to the members.
type ProxyMembers struct {
	Endpoints    []string
	SyncInterval time.Duration // zero: never

	CertFile, KeyFile, AuthorityFile string
	SkipVerify                       bool

	KeepAliveTime, KeepAliveTimeout time.Duration
	PermitWithoutStream             bool
	MaxSendBytes, MaxRecvBytes      int
}

// ProxyClients say where clients connect, and what they may do.
type ProxyClients struct {
	Listen  string // HOST:PORT
	Metrics string // URL; empty: none

	TLS      config.TLS
	Suites   []string
	Min, Max string // versions
	Years    uint   // that a certificate of --auto-tls is good for
	DataDir  string // of such a certificate

	MinPing, Ping, PingTimeout time.Duration
	MaxStreams                 uint32
}

// ProxyRunner runs a proxy until the context ends, or fails.
type ProxyRunner func(ctx context.Context, g *GRPCProxy, log *logging.Log) error

// Defaults that etcd's proxy has, and one that it has not: a client that opens four billion streams takes all memory.
const (
	defaultProxySend    = 1.5 * 1024 * 1024
	defaultProxyStreams = 10_000
	defaultProxyPing    = 2 * time.Hour
	defaultProxyMinPing = 5 * time.Second
	defaultProxyTimeout = 20 * time.Second
	defaultProxyDir     = "default.proxy"
)

func newGRPCProxy(s command.Streams, run ProxyRunner) *cobra.Command {
	var g GRPCProxy
	start := &cobra.Command{
		Use:   "start",
		Short: "Forward calls of clients to members until interrupted",
		Long: "Forward calls of clients to members, until interrupted: each call goes to the next member that is connected, " +
			"so many clients share few connections. Users and permissions are checked by the members. Name the members' " +
			"client URLs with --endpoints, or the domain whose records in DNS do with --discovery-srv.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.run(cmd.Context(), s, run) },
	}
	g.addMemberFlags(start)
	g.addClientFlags(start.Flags())
	g.addOtherFlags(start.Flags())
	return command.Group("grpc-proxy", "Forward calls of clients to members", start)
}

func (g *GRPCProxy) addMemberFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&g.Members.Endpoints, "endpoints", []string{defaultGatewayMember},
		"members to forward to, separated by commas")
	f.DurationVar(&g.Members.SyncInterval, "endpoints-auto-sync-interval", 0,
		"how often to ask the members who they are, and to forward to those; 0: never")
	g.lookup.addTo(cmd)
	g.lookup.authorityFlag = "cacert"
	f.StringVar(&g.Members.CertFile, "cert", "",
		"file of the certificate to show to members; without a common name, which would be the user of all clients")
	f.StringVar(&g.Members.KeyFile, "key", "", "file of the key of --cert")
	f.StringVar(&g.Members.AuthorityFile, "cacert", "", "file of certificates that may sign those of the members")
	f.BoolVar(&g.Members.SkipVerify, "insecure-skip-tls-verify", false,
		"do not check the certificates of the members; for tests")
	f.DurationVar(&g.Members.KeepAliveTime, "dial-keepalive-time", 0, "how often to ping a member on a connection; 0: never")
	f.DurationVar(&g.Members.KeepAliveTimeout, "dial-keepalive-timeout", defaultProxyTimeout,
		"how long a member may take to answer a ping")
	f.BoolVar(&g.Members.PermitWithoutStream, "permit-without-stream", false, "ping members also while no call is open")
	f.IntVar(&g.Members.MaxSendBytes, "max-send-bytes", defaultProxySend, "largest message to a member")
	f.IntVar(&g.Members.MaxRecvBytes, "max-recv-bytes", math.MaxInt32, "largest message from a member")
}

func (g *GRPCProxy) addClientFlags(f *pflag.FlagSet) {
	f.StringVar(&g.Clients.Listen, "listen-addr", defaultGatewayAddress, "HOST:PORT to accept connections at")
	f.StringVar(&g.Clients.Metrics, "metrics-addr", "", "URL, such as http://0.0.0.0:9090, to serve metrics and health at, too")
	f.StringVar(&g.Clients.TLS.CertFile, "cert-file", "", "file of the certificate to show to clients, who then must use TLS")
	f.StringVar(&g.Clients.TLS.KeyFile, "key-file", "", "file of the key of --cert-file")
	f.StringVar(&g.Clients.TLS.TrustedCAFile, "trusted-ca-file", "",
		"file of certificates that may sign those of clients, who then must show one")
	f.StringVar(&g.Clients.TLS.CRLFile, "client-crl-file", "", "file of lists of clients' certificates that are revoked")
	f.BoolVar(&g.Clients.TLS.Auto, "auto-tls", false, "show clients a certificate that is made for it, in --data-dir")
	f.UintVar(&g.Clients.Years, "self-signed-cert-validity", 1, "years that such a certificate is good for")
	f.StringVar(&g.Clients.DataDir, "data-dir", defaultProxyDir, "directory of such a certificate")
	f.StringSliceVar(&g.Clients.Suites, "listen-cipher-suites", nil, "suites of TLS 1.2, separated by commas; none: Go's")
	f.StringVar(&g.Clients.Min, "tls-min-version", "TLS1.2", "least version of TLS: TLS1.2 or TLS1.3")
	f.StringVar(&g.Clients.Max, "tls-max-version", "", "greatest version of TLS: TLS1.2 or TLS1.3; empty: the newest")
	f.DurationVar(&g.Clients.MinPing, "grpc-keepalive-min-time", defaultProxyMinPing,
		"clients that ping more often are disconnected")
	f.DurationVar(&g.Clients.Ping, "grpc-keepalive-interval", defaultProxyPing,
		"how often to ping a client that says nothing; 0: never")
	f.DurationVar(&g.Clients.PingTimeout, "grpc-keepalive-timeout", defaultProxyTimeout,
		"how long a client may take to answer a ping; 0: no pings")
	f.Uint32Var(&g.Clients.MaxStreams, "max-concurrent-streams", defaultProxyStreams, "calls that one connection may have open")
}

func (g *GRPCProxy) addOtherFlags(f *pflag.FlagSet) {
	f.StringVar(&g.AdvertiseURL, "advertise-client-url", defaultGatewayAddress,
		"address that clients are told instead of the members' (MemberList); empty: they are told the members'")
	f.StringVar(&g.ResolverPrefix, "resolver-prefix", "",
		"prefix of the keys under which proxies register, so that each tells clients the addresses of all")
	f.IntVar(&g.ResolverTTL, "resolver-ttl", 0, "seconds after which a proxy that is gone is not registered any more")
	f.StringVar(&g.Namespace, "namespace", "", "prefix of all keys, which clients neither write nor see")
	f.StringVar(&g.memory, "memory", config.Memory{}.String(),
		"memory of this process: a size such as 512MiB or 4GiB, or a part of what the machine or its control group has, "+
			"such as 50%; 128MiB at least; auto: half of what there is, at most 4GiB")
	f.BoolVar(&g.Profiles, "enable-pprof", false, "serve profiles under /debug/pprof/")
	f.BoolVar(&g.LogCalls, "experimental-enable-grpc-logging", false, "log each call, without what is in it")
	f.BoolVar(&g.Debug, "debug", false, "log more")
	f.BoolVar(&g.ordering, "experimental-serializable-ordering", false, "refused: "+noOrdering)
	f.StringVar(&g.leasing, "experimental-leasing-prefix", "", "refused: "+noLeasing)
}

const (
	noOrdering = "read linearizably where the order matters, which asks a member's peers once"
	noLeasing  = "the proxy keeps no keys; linearizable reads are cheap here"
)

// run checks the flags, finds the members, and runs the proxy.
func (g *GRPCProxy) run(ctx context.Context, s command.Streams, run ProxyRunner) error {
	if err := g.check(); err != nil {
		return err
	}
	level := "info"
	if g.Debug {
		level = "debug"
	}
	log, err := logging.Open(logging.Options{Level: level, Format: logging.JSON, Outputs: []string{"stderr"}, Stderr: s.Err})
	if err != nil {
		return command.Refused(err)
	}
	defer log.Close()
	records, err := g.lookup.find(ctx, g.resolver, log.Logger)
	if err != nil {
		return err
	}
	if len(records) > 0 {
		g.Members.Endpoints = urlsOf(records)
	}
	err = run(ctx, g, log)
	if err == nil || ctx.Err() != nil { // it was asked to stop
		return nil
	}
	return command.Refused(err)
}

// check refuses settings that contradict each other, or that cannot be honoured. Where etcd has words for it, they come first.
func (g *GRPCProxy) check() error {
	switch {
	case g.ordering:
		return command.Usagef("--experimental-serializable-ordering: %s", noOrdering)
	case g.leasing != "":
		return command.Usagef("--experimental-leasing-prefix: %s", noLeasing)
	case g.ResolverPrefix != "" && g.ResolverTTL < 1:
		return command.Usagef("invalid resolver-ttl %d: --resolver-prefix needs --resolver-ttl, in seconds", g.ResolverTTL)
	case g.ResolverPrefix == "" && g.ResolverTTL > 0:
		return command.Usagef("invalid resolver-prefix %q: --resolver-ttl needs --resolver-prefix", g.ResolverPrefix)
	case g.ResolverPrefix != "" && g.AdvertiseURL == "":
		return command.Usagef("invalid advertise-client-url %q: --resolver-prefix needs one to register", g.AdvertiseURL)
	case g.Members.MaxSendBytes <= 0 || g.Members.MaxRecvBytes <= 0 || g.Clients.MaxStreams == 0:
		return command.Usagef("--max-send-bytes, --max-recv-bytes and --max-concurrent-streams must be more than 0")
	case min(g.Members.SyncInterval, g.Members.KeepAliveTime, g.Members.KeepAliveTimeout, g.Clients.MinPing, g.Clients.Ping,
		g.Clients.PingTimeout) < 0:
		return command.Usagef("a duration is negative")
	}
	var err error
	if g.Memory, err = config.ParseMemory(g.memory); err != nil {
		return command.Usagef("--memory %s: %w", g.memory, err)
	}
	if err := g.checkTLS(); err != nil {
		return err
	}
	return g.checkEndpoints()
}

func (g *GRPCProxy) checkTLS() error {
	t := &g.Clients.TLS
	least, err := tlsVersion("tls-min-version", g.Clients.Min)
	if err != nil {
		return err
	}
	most, err := tlsVersion("tls-max-version", g.Clients.Max)
	if err != nil {
		return err
	}
	switch {
	case t.Auto && g.Clients.Years == 0:
		return command.Usagef("selfSignedCertValidity is invalid,it should be greater than 0 (--self-signed-cert-validity)")
	case most != 0 && least > most:
		return command.Usagef("min version (%s) is greater than max version (%s)", g.Clients.Min, g.Clients.Max)
	case least == tls.VersionTLS13 && len(g.Clients.Suites) > 0:
		return command.Usagef("cipher suites cannot be configured when only TLS1.3 is enabled")
	case (t.CertFile == "") != (t.KeyFile == ""):
		return command.Usagef("--cert-file and --key-file need each other")
	case (t.TrustedCAFile != "" || t.CRLFile != "") && t.CertFile == "":
		return command.Usagef("--trusted-ca-file and --client-crl-file need --cert-file and --key-file: clients show no " +
			"certificate without TLS")
	case t.CRLFile != "" && t.TrustedCAFile == "":
		return command.Usagef("--client-crl-file needs --trusted-ca-file: nobody is asked for a certificate without")
	case (g.Members.CertFile == "") != (g.Members.KeyFile == ""):
		return command.Usagef("--cert and --key need each other")
	}
	return nil
}

// tlsVersion reads a version; 0: Go chooses.
func tlsVersion(flag, text string) (uint16, error) {
	switch text {
	case "":
		return 0, nil
	case "TLS1.2":
		return tls.VersionTLS12, nil
	case "TLS1.3":
		return tls.VersionTLS13, nil
	}
	return 0, command.Usagef("%s is invalid: unexpected TLS version %q (must be one of: TLS1.2, TLS1.3)", flag, text)
}

// checkEndpoints refuses endpoints that are none, and one at which the proxy itself listens.
func (g *GRPCProxy) checkEndpoints() error {
	own, err := net.ResolveTCPAddr("tcp", g.Clients.Listen)
	if err != nil {
		return command.Usagef("--listen-addr %s: %w", g.Clients.Listen, err)
	}
	var out []string
	for _, endpoint := range g.Members.Endpoints {
		endpoint = strings.TrimSpace(endpoint)
		if endpoint == "" {
			continue
		}
		out = append(out, endpoint)
		if strings.HasPrefix(endpoint, "unix:") || strings.HasPrefix(endpoint, "unixs:") {
			continue
		}
		address := strings.TrimPrefix(strings.TrimPrefix(endpoint, "http://"), "https://")
		if _, _, err := net.SplitHostPort(address); err != nil {
			return command.Usagef("--endpoints %s: %w", endpoint, err)
		}
		// A host that cannot be resolved now may be later: it is tried again.
		target, err := net.ResolveTCPAddr("tcp", address)
		if err == nil && g.lookup.domain == "" && itself(own, target) {
			return command.Usagef("--endpoints %s: the proxy itself listens there; choose another --listen-addr", endpoint)
		}
	}
	if g.Members.Endpoints = out; len(out) == 0 {
		return command.Usagef("--endpoints names no member")
	}
	return nil
}

// MetricsAddress is where metrics are served beside, and whether with TLS; empty: nowhere.
func (g *GRPCProxy) MetricsAddress() (address string, secure bool, err error) {
	if g.Clients.Metrics == "" {
		return "", false, nil
	}
	u, err := config.ParseURL(g.Clients.Metrics)
	if err != nil {
		return "", false, command.Usagef("--metrics-addr: %w", err)
	}
	if u.Network() != "tcp" {
		return "", false, command.Usagef("--metrics-addr %s: use http or https", g.Clients.Metrics)
	}
	if u.Secure() && g.Clients.TLS.CertFile == "" && !g.Clients.TLS.Auto {
		return "", false, fmt.Errorf("--metrics-addr %s needs --cert-file and --key-file, or --auto-tls", g.Clients.Metrics)
	}
	return u.Address, u.Secure(), nil
}
