package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/discovery"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/reload"
	"github.com/quorate/quorate/internal/server/certs"
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
		return fmt.Errorf("discovery: the registered members are %q: %w", text, err)
	}
	b.logger.Info("found the members of the new cluster", "members", text)
	b.cfg.Bootstrap.InitialCluster = members
	at := slices.IndexFunc(members, func(m config.InitialMember) bool { return m.Name == b.cfg.Name })
	if at < 0 || !slices.Equal(urlTexts(members[at].PeerURLs), urlTexts(b.cfg.Advertise.PeerURLs)) {
		return fmt.Errorf("discovery: the registered members are %q, and this one, %s, is not among them as it is now, or not "+
			"alone under its name: give each member a --name of its own, and take another token", text, b.cfg.Name)
	}
	return nil
}

// discoveryClient makes the settings of a client of the running cluster.
func discoveryClient(d *config.Discovery) (clientv3.Config, error) {
	settings := clientv3.Config{
		Endpoints: d.Endpoints, DialTimeout: d.DialTimeout, DialKeepAliveTime: d.KeepAliveTime,
		DialKeepAliveTimeout: d.KeepAliveTimeout, Logger: zap.NewNop(), Username: d.User, Password: d.Password,
	}
	if name, password, both := strings.Cut(d.User, ":"); both && d.Password == "" {
		settings.Username, settings.Password = name, password
	}
	secure := !d.InsecureTransport || d.CertFile != "" || d.TrustedCAFile != "" || d.SkipVerify
	if !secure && !slices.ContainsFunc(d.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https://") }) {
		return settings, nil
	}
	var err error
	settings.TLS, err = certs.Dialing(reload.File{Flag: "--discovery-cacert", Path: d.TrustedCAFile},
		reload.File{Flag: "--discovery-cert", Path: d.CertFile}, reload.File{Flag: "--discovery-key", Path: d.KeyFile})
	if err == nil {
		settings.TLS.InsecureSkipVerify = d.SkipVerify
	}
	return settings, err
}
