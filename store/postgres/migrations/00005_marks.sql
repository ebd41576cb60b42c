-- +goose Up

-- What a ledger knows of the last rejection's reason is its length and its
-- SHA-256: the text may have secrets in it.
UPDATE stopgate.counts
    SET reason = convert_to(octet_length(reason)::text || ':' || encode(sha256(reason), 'hex'), 'UTF8')
    WHERE reason <> '';
