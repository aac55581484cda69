package command

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/base/reload"
	"github.com/quorate/quorate/internal/base/tlsfiles"
)

// identity is who a command comes from, and whom it trusts: etcdctl's flags and environment.
type identity struct {
	user, password     string
	passwordVariable   string // of the environment that password is from, unless a flag gave another one
	variablePassword   string
	trusted            string // a file of certificates
	certificate, key   string // files
	trustAny           bool
	encrypted, inClear bool // what the endpoints ask for
	ask                func(prompt string) (string, error)
	side               string // of two clusters, as the beginning of the flags' names; empty: there is one
}

// flag is how a flag is written.
func (i *identity) flag(name string) string { return "--" + i.side + name }

// endpoints is how the flag of the endpoints is written.
func (i *identity) endpoints() string {
	if i.side == "" {
		return "--endpoints"
	}
	return "--" + strings.TrimSuffix(i.side, "-")
}

// variable is the default of a flag: our own variable of the environment, else etcdctl's.
func variable(s Streams, name, otherwise string) string {
	if v := s.Env(variableName(s, name)); v != "" {
		return v
	}
	return otherwise
}

// variableName is the variable that such a flag has its default from; empty if none is set.
func variableName(s Streams, name string) string {
	for _, prefix := range []string{"QUORATE_", "ETCDCTL_"} {
		if s.Env(prefix+name) != "" {
			return prefix + name
		}
	}
	return ""
}

func (i *identity) addTo(cmd *cobra.Command, s Streams) {
	i.ask = s.Secret
	text := func(into *string, flag, variableName, about string) {
		cmd.Flags().StringVar(into, flag, "", about+" (or QUORATE_"+variableName+", ETCDCTL_"+variableName+")")
		if v := variable(s, variableName, ""); v != "" {
			*into = v // not as a default, which help texts show
		}
	}
	text(&i.user, "user", "USER", "user, as NAME or NAME:PASSWORD; a password that is missing is asked for")
	text(&i.password, "password", "PASSWORD", "password of --user")
	i.passwordVariable, i.variablePassword = variableName(s, "PASSWORD"), i.password
	text(&i.trusted, "cacert", "CACERT", "file of certificates that may sign those of the members")
	text(&i.certificate, "cert", "CERT", "file of the certificate to show to members that ask for one")
	text(&i.key, "key", "KEY", "file of the key of --cert")
	cmd.Flags().BoolVar(&i.trustAny, "insecure-skip-tls-verify", false,
		"do not check the certificates of the members; for tests")
}

// login returns user and password; both are empty if no user is named. A password that is missing is asked for once.
func (i *identity) login() (user, password string, err error) {
	user, password, both := strings.Cut(i.user, ":")
	if password == "" {
		password = i.password
	}
	switch {
	case user == "" && password == "":
		return "", "", nil
	case user == "":
		return "", "", Usagef("%s needs %s", i.flag("password"), i.flag("user"))
	case password == "" && i.ask != nil:
		if i.password, err = i.ask("Password of " + user + ": "); err != nil {
			return "", "", Usagef("read the password of %s: %w", user, err)
		}
		if i.password == "" {
			return "", "", Usagef("the password of %s is empty", user)
		}
		return user, i.password, nil
	case password == "":
		return "", "", Usagef("%s %s needs a password: give %s, or %[1]s NAME:PASSWORD", i.flag("user"), user,
			i.flag("password"))
	case both && i.password != "" && i.password != password:
		other := i.flag("password")
		if i.passwordVariable != "" && i.password == i.variablePassword {
			other = i.passwordVariable + " of the environment"
		}
		return "", "", Usagef("%s NAME:PASSWORD and %s name two passwords: drop one of them", i.flag("user"), other)
	}
	return user, password, nil
}

// tls returns how to encrypt; nil: not at all.
func (i *identity) tls() (*tls.Config, error) {
	switch {
	case i.encrypted && i.inClear:
		return nil, Usagef("%s: name all members with https://, or none", i.endpoints())
	case !i.encrypted && (i.trusted != "" || i.certificate != "" || i.key != ""):
		i.encrypted = true // as etcdctl: a file says it, too
	}
	if !i.encrypted {
		return nil, nil
	}
	if (i.certificate == "") != (i.key == "") {
		return nil, Usagef("%s and %s need each other", i.flag("cert"), i.flag("key"))
	}
	config, err := tlsfiles.Dialing(i.file("cacert", i.trusted), i.file("cert", i.certificate), i.file("key", i.key))
	if err != nil {
		return nil, Usagef("%w", err)
	}
	config.InsecureSkipVerify = i.trustAny
	return config, nil
}

// file is what a flag names.
func (i *identity) file(flag, path string) reload.File {
	return reload.File{Flag: i.flag(flag), Path: path}
}

// note takes the scheme off an endpoint, and notes what it asks for.
func (i *identity) note(endpoint string) string {
	address, secure := strings.CutPrefix(endpoint, "https://")
	if !secure {
		var clear bool
		if address, clear = strings.CutPrefix(endpoint, "http://"); clear {
			i.inClear = true
		}
	}
	i.encrypted = i.encrypted || secure
	return address
}

// explainDenied says who may not do something, and what a user needs for it.
func (i *identity) explainDenied(text string) string {
	user, _, _ := strings.Cut(i.user, ":")
	who := "user " + user
	switch {
	case user != "":
	case i.certificate != "":
		who = "the user that the certificate of " + i.flag("cert") + " names"
	default:
		who = "a client without " + i.flag("user")
	}
	return fmt.Sprintf("%s: %s has no role that allows it. Keys need `quorate role grant-permission ROLE "+
		"read|write|readwrite KEY` and `quorate user grant-role USER ROLE`; users, members, alarms, backups, limits and the "+
		"audit need the role root. `quorate user get USER --detail` shows what a user may do; %s names another one",
		text, who, i.flag("user"))
}
