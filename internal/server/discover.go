package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/base/reload"
	"github.com/quorate/quorate/internal/base/tlsfiles"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/server/discovery"
)

// discover finds the members of the new cluster in a running one, and puts them where --initial-cluster would have.
func (b *bootstrap) discover(ctx context.Context) error {
	d := &b.cfg.Bootstrap.Discovery
	settings, err := discoveryClient(d)
	if err != nil {
		return err
	}
	client, err := clientv3.New(settings)
	if err != nil {
		return fmt.Errorf("--discovery-endpoints %s: %w", strings.Join(d.Endpoints, ","), err)
	}
	defer client.Close()
	startup := b.startup()
	defer startup.close()
	startup.say("waits for the other members to register under --discovery-token")
	own := []config.InitialMember{{Name: b.cfg.Name, PeerURLs: b.cfg.Advertise.PeerURLs}}
	id := identity.MemberID(urlTexts(b.cfg.Advertise.PeerURLs), b.cfg.Bootstrap.ClusterToken).String()
	text, err := discovery.Join(ctx, discovery.Options{
		Registry: client, Token: d.Token, Timeout: d.RequestTimeout, Logger: b.logger,
	}, id, config.FormatInitialCluster(own))
	if err != nil {
		return err
	}
	members, err := config.ParseInitialCluster(text)
	if err != nil {
		return fmt.Errorf("discovery: what is registered under the token is no list of members: %w", err)
	}
	for i := range members {
		if err := config.CheckName(members[i].Name); err != nil {
			return fmt.Errorf("discovery: the name of a member that is registered under the token %w", err)
		}
	}
	b.logger.Info("found the members of the new cluster", "members", len(members))
	b.cfg.Bootstrap.InitialCluster = members
	at := slices.IndexFunc(members, func(m config.InitialMember) bool { return m.Name == b.cfg.Name })
	if at < 0 || !slices.Equal(urlTexts(members[at].PeerURLs), urlTexts(b.cfg.Advertise.PeerURLs)) {
		return fmt.Errorf("discovery: this member, %s, is not registered as it is now, or another one has its name: give "+
			"each member a --name of its own, and take another token", b.cfg.Name)
	}
	return nil
}

// maxRegistryBytes bounds an answer of the running cluster, which is not trusted.
const maxRegistryBytes = 16 << 20

// discoveryClient makes the settings of a client of the running cluster.
func discoveryClient(d *config.Discovery) (clientv3.Config, error) {
	settings := clientv3.Config{
		Endpoints: d.Endpoints, DialTimeout: d.DialTimeout, DialKeepAliveTime: d.KeepAliveTime,
		DialKeepAliveTimeout: d.KeepAliveTimeout, Logger: zap.NewNop(), Username: d.User, Password: d.Password,
		MaxCallRecvMsgSize: maxRegistryBytes,
	}
	if name, password, both := strings.Cut(d.User, ":"); both && d.Password == "" {
		settings.Username, settings.Password = name, password
	}
	secure := !d.InsecureTransport || d.CertFile != "" || d.TrustedCAFile != "" || d.SkipVerify
	if !secure && !slices.ContainsFunc(d.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https://") }) {
		return settings, nil
	}
	var err error
	settings.TLS, err = tlsfiles.Dialing(reload.File{Flag: "--discovery-cacert", Path: d.TrustedCAFile},
		reload.File{Flag: "--discovery-cert", Path: d.CertFile}, reload.File{Flag: "--discovery-key", Path: d.KeyFile})
	if err == nil {
		settings.TLS.InsecureSkipVerify = d.SkipVerify
	}
	return settings, err
}
