package doctor

import "strings"

// certificates are how long they are good, as a share of their life.
func (p *patient) certificates() (all []Finding) {
	for _, s := range p.answered() {
		for _, c := range s.o.GetCertificates() {
			left, life := c.GetUntilMs()-s.o.GetNowMs(), c.GetUntilMs()-c.GetFromMs()
			what := "the " + strings.ReplaceAll(c.GetWhat(), "-", " ") + " of " + s.name() + " for " + c.GetPort() + "s"
			one := []string{s.name()}
			const cure = "openssl x509 -noout -dates -in FILE"
			severity := Severity(0)
			switch {
			case left <= 0:
				all = append(all, found(CertExpired, NextFailure, one, cure, "%s expired %s ago: connections fail; put "+
					"a new one in "+
					"the place of its file, which is read again by itself", what, span(-left)))
				continue
			case c.GetFromMs() == 0: // a list lives for days, and is replaced in the last moment
				continue
			case left*100 <= life:
				severity = NextFailure
			case left*20 <= life:
				severity = SlowerThanIs
			case left*10 <= life:
				severity = Advice
			default:
				continue
			}
			all = append(all, found(CertNear, severity, one, cure, "%s expires in %s, of %s that it is made for: put a "+
				"new one in "+
				"the place of its file, which is read again by itself", what, span(left), span(life)))
		}
	}
	return all
}

// security is which ports are open to more than their users.
func (p *patient) security() (all []Finding) {
	for _, s := range p.answered() {
		ports, one := s.o.GetSecurity(), []string{s.name()}
		switch {
		case ports == nil:
			continue
		case !ports.GetPeersEncrypted():
			all = append(all, found(PeersInClear, Advice, one, "quorate config print", "%s speaks with other machines' "+
				"members "+
				"unencrypted: see --peer-cert-file, and docs/security.md", s.name()))
		case !ports.GetPeersCertified():
			all = append(all, found(PeersUncertain, Advice, one, "quorate config print", "the peer port of %s asks for no "+
				"certificates: see --peer-client-cert-auth, and docs/security.md", s.name()))
		}
		if ports.GetUsers() && !ports.GetClientsEncrypted() {
			all = append(all, found(PasswordsClear, Advice, one, "quorate config print", "clients log in at %s over "+
				"connections that "+
				"are not encrypted: see --cert-file, and docs/security.md", s.name()))
		}
	}
	return all
}
