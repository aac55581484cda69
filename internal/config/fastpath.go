package config

// FastPath says when a member uses the fast path: inferred commits, and offers to all voters.
type FastPath string

// The values of --fast-path.
const (
	FastPathAuto   FastPath = "auto"
	FastPathAlways FastPath = "always"
	FastPathNever  FastPath = "never"
)

var fastPathSettings = []setting{
	{name: "fast-path", def: "auto", arg: "WHEN",
		help: "When a member finds out by itself that a client's write has committed, one round trip before the leader could " +
			"tell it: 'always', 'never', or 'auto': while the leader is a millisecond or more away.",
		value: choices(func(c *Config) *FastPath { return &c.Consensus.FastPath }, FastPathAuto, FastPathAlways,
			FastPathNever)},
}
