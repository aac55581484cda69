package server

import (
	"net/http"
	"os"
	"slices"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/console"
	"github.com/quorate/quorate/internal/console/pages"
	"github.com/quorate/quorate/internal/labweb"
)

// consoleHandler makes the console; nil: this member serves none.
func (s *Server) consoleHandler() (http.Handler, error) {
	listen := s.cfg.Listen.ConsoleURLs
	if len(listen) == 0 {
		return nil, nil
	}
	endpoint := ""
	if urls := s.cfg.Advertise.ClientURLs; len(urls) > 0 {
		endpoint = urls[0].String()
	}
	c, err := console.New(console.Options{
		Conn: s.services.Inside(), Enter: s.services.EnterInside, Lend: s.services.LendTo,
		Admin:     s.cfg.Console == config.ConsoleAdmin,
		Encrypted: !slices.ContainsFunc(listen, func(u config.URL) bool { return !u.Secure() }),
		Hosts:     s.consoleHosts(), Member: s.cfg.Name, Endpoint: endpoint, Version: config.Build(),
		Pages: pages.All(), Laboratory: labweb.Files, MemoryBytes: s.budgets.Console, Logger: s.logger,
	})
	if err != nil {
		return nil, err
	}
	return c.Handler(), nil
}

// consoleHosts are the names by which browsers may call this member without encryption.
func (s *Server) consoleHosts() (hosts []string) {
	for _, u := range slices.Concat(s.cfg.Listen.ConsoleURLs, s.cfg.Advertise.ClientURLs) {
		hosts = append(hosts, u.Host())
	}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	return append(hosts, s.cfg.HTTP.HostWhitelist...)
}
