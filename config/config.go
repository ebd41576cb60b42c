// Package config reads what people write: agent specs and agent-level hooks
// (Azure's YAML v2 and JSON), a watched directory of them, and the server file
// stopgate.yaml.
//
// The usual case is one resource in a request:
//
//	spec, warnings, err := config.ReadSpecAs(gate.AgentSpec, "application/yaml", body)
//
// Reading never stops at the first mistake. Everything that is wrong comes back
// at once, each as a [gate.Finding] with path, line and column; what is only
// suspicious is a warning beside an accepted spec. A spec is lenient about
// fields that it does not know (kept and warned about, spec/azure.md 5), the
// server file is strict about them.
//
// Text is hostile until it is read: bytes that are not UTF-8, keys given twice,
// nesting deeper than 64, YAML aliases that multiply and characters that cannot
// be stored are refused, not repaired.
package config
