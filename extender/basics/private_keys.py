"""Private keys that are encrypted: an error, instead of OpenSSL's question for the passphrase."""


def refuse_passphrase() -> str:
    """Refuse to decrypt a key; the argument `password` of `ssl.SSLContext.load_cert_chain`.

    Without that argument, OpenSSL asks on the terminal, or reads standard input, and the process waits.

    Raises:
        OSError: always.
    """
    raise OSError("the private key is encrypted; want one without a passphrase")
