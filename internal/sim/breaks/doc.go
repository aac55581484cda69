// Package breaks holds the negative controls of the simulator: switches that break one law each, on purpose, so that a test can
// demand that a checker notices. No other code sets them.
package breaks
