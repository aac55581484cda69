package typed

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// plain needs no quotes in any shell. Brackets do, in zsh: those of an IPv6 address would be a pattern that matches nothing.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.,:/=@%+-]+$`)

// Word is one argument as a shell reads it: in single quotes if it has to be.
func Word(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Line is a command line of these arguments.
func Line(words ...string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = Word(word)
	}
	return strings.Join(out, " ")
}

// Start is how a newcomer is started that is to have these peer URLs, and joins by the peer URL of a member. Its name may be
// empty. The operator who types it adds flags for data, clients and TLS.
func Start(name, join string, peerURLs []string) string {
	words := []string{"quorate"}
	if name != "" {
		words = append(words, "--name", name)
	}
	return Line(append(words, "--join", join, "--listen-peer-urls", strings.Join(listenURLs(peerURLs), ","),
		"--initial-advertise-peer-urls", strings.Join(peerURLs, ","))...)
}

// listenURLs are where a member listens that is reached at these URLs: on all addresses where a URL has the name of a host, on
// which no member listens.
func listenURLs(urls []string) []string {
	out := make([]string, 0, len(urls))
	for _, text := range urls {
		u, err := url.Parse(text)
		if err == nil && u.Port() != "" && net.ParseIP(u.Hostname()) == nil && !strings.EqualFold(u.Hostname(), "localhost") {
			text = u.Scheme + "://0.0.0.0:" + u.Port()
		}
		out = append(out, text)
	}
	return out
}
