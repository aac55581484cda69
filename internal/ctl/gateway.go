package ctl

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/gateway"
	"github.com/quorate/quorate/internal/ctl/logging"
	"github.com/quorate/quorate/internal/server/discovery/srv"
)

const (
	defaultGatewayAddress = "127.0.0.1:23790"
	defaultGatewayMember  = "127.0.0.1:2379"
	defaultRetryDelay     = time.Minute
)

// gatewayFlags are those of etcd's gateway.
type gatewayFlags struct {
	listen     string
	endpoints  []string
	retryDelay time.Duration
	lookup     lookup
	resolver   srv.Resolver // nil: that of the system
}

func newGateway(s command.Streams) *cobra.Command {
	var g gatewayFlags
	start := &cobra.Command{
		Use:   "start",
		Short: "Forward TCP connections to members until interrupted",
		Long: "Forward TCP connections to members in turn (round robin), until interrupted. TLS and users are between " +
			"client and member: the gateway passes bytes on. Name the members' client URLs with --endpoints, or the domain " +
			"whose records in DNS do with --discovery-srv.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.run(cmd.Context(), s) },
	}
	flags := start.Flags()
	flags.StringVar(&g.listen, "listen-addr", defaultGatewayAddress, "HOST:PORT to accept connections at")
	flags.StringSliceVar(&g.endpoints, "endpoints", []string{defaultGatewayMember},
		"members to forward to, separated by commas")
	flags.DurationVar(&g.retryDelay, "retry-delay", defaultRetryDelay, "how long to avoid a member that accepts no connection")
	g.lookup.addTo(start)
	g.lookup.authorityFlag = "trusted-ca-file"
	flags.StringVar(&g.lookup.authority, g.lookup.authorityFlag, "",
		"file of certificates that may sign those of the members that --discovery-srv finds; else the system's may")
	return command.Group("gateway", "Forward connections of clients to members", start)
}

// run forwards until the context ends.
func (g *gatewayFlags) run(ctx context.Context, s command.Streams) error {
	log, err := logging.Open(logging.Options{Level: "info", Format: logging.JSON, Outputs: []string{"stderr"}, Stderr: s.Err})
	if err != nil {
		return command.Refused(err)
	}
	defer log.Close()
	endpoints, err := g.targets(ctx, log.Logger)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", g.listen)
	if err != nil {
		return command.Refused(err)
	}
	err = gateway.New(gateway.Options{Endpoints: endpoints, RetryDelay: g.retryDelay, Logger: log.Logger}).Serve(ctx, listener)
	if ctx.Err() != nil { // it was asked to stop
		return nil
	}
	return command.Refused(err)
}

// targets are the endpoints without their schemes. One at which the gateway itself listens would forward to itself.
func (g *gatewayFlags) targets(ctx context.Context, logger *slog.Logger) ([]gateway.Endpoint, error) {
	if g.retryDelay <= 0 {
		return nil, command.Usagef("--retry-delay %v: give a time, such as 1m", g.retryDelay)
	}
	own, err := net.ResolveTCPAddr("tcp", g.listen)
	if err != nil {
		return nil, command.Usagef("--listen-addr %s: %w", g.listen, err)
	}
	records, err := g.lookup.find(ctx, g.resolver, logger)
	if err != nil {
		return nil, err
	}
	var out []gateway.Endpoint
	for i := range records { // the host is resolved for each connection: that of a member that is down may not be known yet
		r := &records[i]
		out = append(out, gateway.Endpoint{Address: r.Address(), Priority: r.Priority, Weight: r.Weight})
		target, err := net.ResolveTCPAddr("tcp", r.Address())
		if err == nil && itself(own, target) {
			return nil, command.Usagef("--discovery-srv %s: %s is where the gateway itself listens; choose another "+
				"--listen-addr", g.lookup.domain, r.URL())
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	for _, endpoint := range g.endpoints {
		address := strings.TrimSpace(endpoint)
		for _, scheme := range []string{"http://", "https://"} {
			address = strings.TrimPrefix(address, scheme)
		}
		target, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			return nil, command.Usagef("--endpoints %s: %w", endpoint, err)
		}
		if itself(own, target) {
			return nil, command.Usagef("--endpoints %s: the gateway itself listens there; choose another --listen-addr",
				endpoint)
		}
		out = append(out, gateway.Endpoint{Address: address})
	}
	if len(out) == 0 {
		return nil, command.Usagef("--endpoints names no member")
	}
	return out, nil
}

// itself tells whether a connection to target reaches the listener at own.
func itself(own, target *net.TCPAddr) bool {
	everywhere := own.IP == nil || own.IP.IsUnspecified()
	return target.Port == own.Port && (target.IP.Equal(own.IP) || everywhere && here(target.IP))
}

// here tells whether an address is one of this machine.
func here(ip net.IP) bool {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}
