package certs

import (
	"crypto/x509"
	"time"
)

// Expiry is until when something in a Keeper is good.
type Expiry struct {
	Kind Kind
	What string // "certificate", "client-certificate", "authority" or "revocation-list"
	At   time.Time
	from time.Time // since when; zero: not known
}

// From is since when it is good; the zero time: not known.
func (e *Expiry) From() time.Time { return e.from }

// The names of certificates and lists that expire.
const (
	ofCertificate       = "certificate"        // shown to clients and peers that connect
	ofClientCertificate = "client-certificate" // shown to servers and peers to which we connect, if that is another one
	ofAuthority         = "authority"          // the first of the file
	ofRevocationList    = "revocation-list"    // the first of the file
)

// Expiries tells until when the files of this moment are good. A nil Keeper has none.
func (k *Keeper) Expiries() (all []Expiry) {
	if k == nil {
		return nil
	}
	add := func(what string, from, at time.Time) {
		if !at.IsZero() {
			all = append(all, Expiry{k.kind, what, at, from})
		}
	}
	leaf := func(what string, leaf *x509.Certificate) { add(what, leaf.NotBefore, leaf.NotAfter) }
	if k.pair != nil {
		leaf(ofCertificate, k.pair.Get().Leaf)
	}
	if k.shown != nil && k.shown != k.pair {
		leaf(ofClientCertificate, k.shown.Get().Leaf)
	}
	if k.roots != nil {
		first := k.roots.Get().First
		add(ofAuthority, first.NotBefore, first.NotAfter)
	}
	if k.lists != nil {
		add(ofRevocationList, time.Time{}, k.lists.Get().expires)
	}
	return all
}

// maxNotice is how long before it expires something is warned of; what is made for less is in its last third.
const maxNotice = 30 * 24 * time.Hour

// Due reports whether it is time to replace it.
func (e *Expiry) Due(now time.Time) bool { return e.At.Sub(now) <= e.notice() }

// Late reports whether an operator should look, because half of the time to replace it has passed.
func (e *Expiry) Late(now time.Time) bool { return e.At.Sub(now) <= e.notice()/2 }

// notice is how long before it expires it should be replaced.
func (e *Expiry) notice() time.Duration {
	if e.from.IsZero() { // lists live for days, and are replaced in the last moment
		return 0
	}
	return min(maxNotice, e.At.Sub(e.from)/3)
}
