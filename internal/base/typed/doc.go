// Package typed writes the command lines that this program prints for an operator to type. Each is complete but for what only
// the operator can know, and a shell reads it as it was meant, whatever the names and paths in it are.
package typed
