package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// URL is where a member listens or can be reached: http or https with host:port, unix or unixs with a socket's path.
type URL struct {
	Scheme  string
	Address string // "host:port", or the path of the socket, relative to the working directory unless it begins with /
}

// ParseURL reads one URL. A URL that would not survive being printed, alone or in a list, is refused: members compare URLs as
// texts.
func ParseURL(text string) (URL, error) {
	u, err := readURL(strings.TrimSpace(text))
	if err != nil {
		return URL{}, err
	}
	printed := u.String()
	if again, err := readURL(strings.TrimSpace(printed)); err != nil || again != u || strings.Contains(printed, ",") {
		return URL{}, fmt.Errorf("%q has characters that do not belong in an address", text)
	}
	return u, nil
}

func readURL(text string) (URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err
		}
		if _, _, split := net.SplitHostPort(text); split == nil {
			return URL{}, fmt.Errorf("%q lacks a scheme: write http://%s, or https://%s for TLS", text, text, text)
		}
		return URL{}, fmt.Errorf("%q is not a URL: %w", text, err)
	}
	if u.Opaque != "" && !strings.Contains(text, "://") { // localhost:2379
		return URL{}, fmt.Errorf("%q lacks a scheme: write http://%s, or https://%s for TLS", text, text, text)
	}
	switch u.Scheme {
	case "http", "https":
		if _, _, err := net.SplitHostPort(u.Host); err != nil {
			return URL{}, fmt.Errorf("%q lacks a port: write %s://host:port", text, u.Scheme)
		}
		if u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return URL{}, fmt.Errorf("%q says more than %s://host:port: write %s://%s", text, u.Scheme, u.Scheme, u.Host)
		}
		return URL{Scheme: u.Scheme, Address: u.Host}, nil
	case "unix", "unixs":
		path := u.Opaque + u.Host + u.Path
		if path == "" {
			return URL{}, fmt.Errorf("%q lacks the path of the socket", text)
		}
		return URL{Scheme: u.Scheme, Address: path}, nil
	case "":
		return URL{}, fmt.Errorf("%q lacks a scheme: write http://%s", text, text)
	default:
		if u.Opaque != "" && !strings.Contains(text, "://") {
			return URL{}, fmt.Errorf("%q lacks a scheme: write http://%s", text, text)
		}
		return URL{}, fmt.Errorf("%q has scheme %q: use http, https, unix or unixs", text, u.Scheme)
	}
}

// ParseURLs reads a comma-separated list; an empty text is an empty list. Lists are sorted, as etcd sorts them.
func ParseURLs(text string) ([]URL, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var urls []URL
	for part := range strings.SplitSeq(text, ",") {
		u, err := ParseURL(part)
		if err != nil {
			return nil, err
		}
		urls = append(urls, u)
	}
	slices.SortFunc(urls, func(a, b URL) int { return strings.Compare(a.String(), b.String()) })
	return urls, nil
}

func (u URL) String() string { return u.Scheme + "://" + u.Address }

// Network names the URL's network for net.Listen and net.Dial.
func (u URL) Network() string {
	if u.Scheme == "unix" || u.Scheme == "unixs" {
		return "unix"
	}
	return "tcp"
}

// Secure tells whether the URL asks for TLS.
func (u URL) Secure() bool { return u.Scheme == "https" || u.Scheme == "unixs" }

// Host returns the host without its port, empty for a socket.
func (u URL) Host() string { return u.host() }

// host returns the host without its port, empty for a socket.
func (u URL) host() string {
	host, _, _ := net.SplitHostPort(u.Address)
	return host
}

// port returns the port, empty for a socket.
func (u URL) port() string {
	_, port, _ := net.SplitHostPort(u.Address)
	return port
}

// wildcard tells whether a listener on the URL takes connections to every address of the machine.
func (u URL) wildcard() bool {
	ip := net.ParseIP(u.host())
	return u.Network() == "tcp" && ip != nil && ip.IsUnspecified()
}

// local tells whether the URL is a loopback address, which means another machine on each machine.
func (u URL) local() bool {
	ip := net.ParseIP(u.host())
	return u.Network() == "unix" || strings.EqualFold(u.host(), "localhost") ||
		(ip != nil && (ip.IsLoopback() || ip.IsUnspecified()))
}

// clashes tells whether listening on both URLs must fail.
func (u URL) clashes(v URL) bool {
	if u.Network() != v.Network() {
		return false
	}
	if u.Network() == "unix" {
		return u.Address == v.Address
	}
	if u.port() != v.port() || u.port() == "0" {
		return false
	}
	return u.wildcard() || v.wildcard() || loopbackAsIP(u.host()) == loopbackAsIP(v.host())
}

func loopbackAsIP(host string) string {
	if strings.EqualFold(host, "localhost") {
		return "127.0.0.1"
	}
	return strings.ToLower(host)
}

func joinURLs(urls []URL) string {
	var texts []string
	for _, u := range urls {
		texts = append(texts, u.String())
	}
	return strings.Join(texts, ",")
}
