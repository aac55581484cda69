package validate

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
)

var errBadURL = errors.New("rpc: not a URL that a member can have")

// PeerURLs checks URLs as etcd does and sorts them. One that is given twice counts once.
func PeerURLs(raw []string) ([]string, error) {
	if len(raw) == 0 {
		return nil, errBadURL
	}
	urls := make([]string, 0, len(raw))
	for _, text := range raw {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil {
			return nil, errBadURL
		}
		switch u.Scheme {
		case "http", "https":
			if _, _, err := net.SplitHostPort(u.Host); err != nil || u.Path != "" {
				return nil, errBadURL
			}
		case "unix", "unixs":
		default:
			return nil, errBadURL
		}
		urls = append(urls, u.String())
	}
	slices.Sort(urls)
	return slices.Compact(urls), nil
}
