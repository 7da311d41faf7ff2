"""Del texto crudo de cada origen a documentos limpios, con su fuente y su licencia."""
