package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server/discovery/srv"
)

// findInDNS finds the members of the cluster by --discovery-srv, and puts them where --initial-cluster would have.
func (b *bootstrap) findInDNS(ctx context.Context) error {
	dns := &b.cfg.Bootstrap.DNS
	records, err := srv.Lookup(ctx, srv.Query{Resolver: b.resolver, Domain: dns.Domain, Service: dns.Service}, srv.Servers)
	if err != nil {
		return fmt.Errorf("--discovery-srv %s: %w", dns.Domain, err)
	}
	var places []srv.Place
	for _, u := range b.cfg.Advertise.PeerURLs {
		places = append(places, srv.Place{Secure: u.Secure(), Address: u.Address})
	}
	own, err := srv.Own(ctx, b.resolver, records, places)
	urls := make([]string, len(records))
	for i := range records {
		urls[i] = records[i].URL()
	}
	if errors.Is(err, srv.ErrNotNamed) {
		return fmt.Errorf("--discovery-srv %s: %w: add a record for it, or set --initial-advertise-peer-urls (%s) to one of %s",
			dns.Domain, err, strings.Join(urlTexts(b.cfg.Advertise.PeerURLs), ","), strings.Join(urls, ","))
	}
	if err != nil {
		return fmt.Errorf("--discovery-srv %s: %w", dns.Domain, err)
	}
	members := make([]config.InitialMember, len(records))
	for i := range records {
		u, err := config.ParseURL(urls[i])
		if err != nil {
			return fmt.Errorf("--discovery-srv %s: %w", dns.Domain, err)
		}
		members[i] = config.InitialMember{Name: records[i].Address(), PeerURLs: []config.URL{u}}
	}
	members[own].Name = b.cfg.Name
	b.logger.Info("got bootstrap from DNS for etcd-server", "domain", dns.Domain, "members", urls, "own", urls[own])
	b.cfg.Bootstrap.InitialCluster = members
	return nil
}

// found computes what this member founds with those that were listed, or found in DNS.
func (b *bootstrap) found() (founding, error) {
	f, err := found(b.cfg)
	if b.cfg.Bootstrap.DNS.Domain != "" {
		f.forgetNames()
	}
	return f, err
}

// forgetNames leaves the names to what members publish. Records have none, each member knows its own only, and all must begin
// with the same configuration.
func (f *founding) forgetNames() {
	for i := range f.config.Members {
		f.config.Members[i].Name = ""
	}
}
