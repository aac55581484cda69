package config

import "fmt"

// ConsoleMode is what users of the console may do, as far as their roles permit it.
type ConsoleMode string

// The modes.
const (
	ConsoleReadOnly ConsoleMode = "read-only"
	ConsoleAdmin    ConsoleMode = "admin"
)

// consoleFaults refuses a console that sends passwords and tokens over a network in the clear.
func (c *Config) consoleFaults() (faults Faults) {
	for _, u := range c.Listen.ConsoleURLs {
		if !u.Secure() && (!u.local() || u.wildcard()) {
			faults = append(faults, fmt.Sprintf("--listen-console-urls %s must be https: a password would cross the network "+
				"in the clear; give it --cert-file and --key-file, or listen on 127.0.0.1", u))
		}
	}
	return faults
}
