package login

import "crypto/tls"

// CommonName returns the user that a client's certificate names: the common name of the first chain that was verified. It is
// not ok if no certificate was verified or the name is empty. The caller decides whether certificates name users at all, and
// must not ask for requests that came through a gateway, whose certificate it would be.
func CommonName(state *tls.ConnectionState) (user string, ok bool) {
	if state == nil {
		return "", false
	}
	for _, chain := range state.VerifiedChains {
		if len(chain) > 0 {
			user = chain[0].Subject.CommonName
			return user, user != ""
		}
	}
	return "", false
}
