package ctl

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/gateway"
	"github.com/quorate/quorate/internal/ctl/logging"
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
}

// lookups are the flags of etcd's gateway that find members in DNS.
var lookups = []string{"discovery-srv", "discovery-srv-name", "trusted-ca-file", "insecure-discovery"}

func newGateway(s command.Streams) *cobra.Command {
	var g gatewayFlags
	start := &cobra.Command{
		Use:   "start",
		Short: "Forward TCP connections to members until interrupted",
		Long: "Forward TCP connections to members in turn (round robin), until interrupted. TLS and users are between " +
			"client and member: the gateway passes bytes on. Name the members' client URLs with --endpoints.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range lookups {
				if cmd.Flags().Changed(name) {
					return command.Usagef("--%s: members are not looked up in DNS; name them with --endpoints", name)
				}
			}
			return g.run(cmd.Context(), s)
		},
	}
	flags := start.Flags()
	flags.StringVar(&g.listen, "listen-addr", defaultGatewayAddress, "HOST:PORT to accept connections at")
	flags.StringSliceVar(&g.endpoints, "endpoints", []string{defaultGatewayMember},
		"members to forward to, separated by commas")
	flags.DurationVar(&g.retryDelay, "retry-delay", defaultRetryDelay, "how long to avoid a member that accepts no connection")
	for _, name := range lookups {
		flags.String(name, "", "not supported")
		_ = flags.MarkHidden(name)
	}
	flags.Lookup("insecure-discovery").NoOptDefVal = "true"
	return command.Group("gateway", "Forward connections of clients to members", start)
}

// run forwards until the context ends.
func (g *gatewayFlags) run(ctx context.Context, s command.Streams) error {
	endpoints, err := g.targets()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", g.listen)
	if err != nil {
		return command.Refused(err)
	}
	log, err := logging.Open(logging.Options{Level: "info", Format: logging.JSON, Outputs: []string{"stderr"}, Stderr: s.Err})
	if err != nil {
		return command.Refused(err)
	}
	defer log.Close()
	err = gateway.New(gateway.Options{Endpoints: endpoints, RetryDelay: g.retryDelay, Logger: log.Logger}).Serve(ctx, listener)
	if ctx.Err() != nil { // it was asked to stop
		return nil
	}
	return command.Refused(err)
}

// targets are the endpoints without their schemes. One at which the gateway itself listens would forward to itself.
func (g *gatewayFlags) targets() ([]string, error) {
	if g.retryDelay <= 0 {
		return nil, command.Usagef("--retry-delay %v: give a time, such as 1m", g.retryDelay)
	}
	own, err := net.ResolveTCPAddr("tcp", g.listen)
	if err != nil {
		return nil, command.Usagef("--listen-addr %s: %w", g.listen, err)
	}
	var out []string
	for _, endpoint := range g.endpoints {
		address := strings.TrimSpace(endpoint)
		for _, scheme := range []string{"http://", "https://"} {
			address = strings.TrimPrefix(address, scheme)
		}
		target, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			return nil, command.Usagef("--endpoints %s: %w", endpoint, err)
		}
		everywhere := own.IP == nil || own.IP.IsUnspecified()
		if target.Port == own.Port && (target.IP.Equal(own.IP) || everywhere && here(target.IP)) {
			return nil, command.Usagef("--endpoints %s: the gateway itself listens there; choose another --listen-addr",
				endpoint)
		}
		out = append(out, address)
	}
	if len(out) == 0 {
		return nil, command.Usagef("--endpoints names no member")
	}
	return out, nil
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
